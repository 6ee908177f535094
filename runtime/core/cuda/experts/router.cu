// SPDX-License-Identifier: Apache-2.0
// Routers, with one warp for each token. Scores rise with logits, so the largest logits have the largest
// scores.
#include <rankc/runtime/cuda/kernels.hpp>

#include "router_rows.cuh"

namespace rankc::runtime::cuda {
namespace {

/// Chooses the `picks` largest logits and computes their weights.
/// Shapes: weights f32 and chosen (tokens, picks), logits (tokens, experts).
template <bool Softmax, class T>
__global__ void __launch_bounds__(router_block)
    take_top(float* weights, std::int32_t* chosen, const T* logits, int tokens, int experts, int picks) {
  const std::size_t n = token_of_warp();
  if (n >= tokens) return;
  const T* x = logits + n * experts;
  float2 row{};
  if constexpr (Softmax) row = softmax_of_row(x, experts);
  pick last{INFINITY, -1};
  for (int k = 0; k < picks; ++k) {
    last = next_pick(x, experts, last);
    if (lane_of_warp() != 0) continue;
    chosen[n * picks + k] = last.expert;
    weights[n * picks + k] = Softmax ? expf(last.logit - row.x) / row.y : logistic(last.logit);
  }
}

/// With the softmax p: dlogits = p (dp - sum(dp p)), where dp is 0 for experts that were not chosen. With the
/// sigmoid s: s (1 - s) ds.
template <bool Softmax, class T>
__global__ void __launch_bounds__(router_block)
    take_top_backward(T* dlogits, const float* dweights, const T* logits, const std::int32_t* chosen,
                      int tokens, int experts, int picks) {
  const std::size_t n = token_of_warp();
  if (n >= tokens) return;
  const T* x = logits + n * experts;
  const float* grad = dweights + n * picks;
  const std::int32_t* c = chosen + n * picks;
  float2 row{};
  float dot = 0.0f;
  if constexpr (Softmax) {
    row = softmax_of_row(x, experts);
    for (int k = 0; k < picks; ++k) dot += grad[k] * (expf(to_float(x[c[k]]) - row.x) / row.y);
  }
  for (int e = lane_of_warp(); e < experts; e += warp_size) {
    float d = 0.0f;
    for (int k = 0; k < picks; ++k)
      if (c[k] == e) d = grad[k];
    const float s = Softmax ? expf(to_float(x[e]) - row.x) / row.y : logistic(to_float(x[e]));
    dlogits[n * experts + e] = from_float<T>(Softmax ? s * (d - dot) : s * (1.0f - s) * d);
  }
}

/// y = total x / sum(x). One thread for each row, which has few elements.
/// Shapes: x, y (tokens, width).
__global__ void __launch_bounds__(router_block)
    normalize_rows(float* y, const float* x, int tokens, int width, float total) {
  const std::size_t n = std::size_t{blockIdx.x} * router_block + threadIdx.x;
  if (n >= tokens) return;
  float sum = static_cast<float>(runtime::smallest_row_sum);
  for (int k = 0; k < width; ++k) sum += x[n * width + k];
  for (int k = 0; k < width; ++k) y[n * width + k] = total * x[n * width + k] / sum;
}

/// dx = total / s (dy - sum(dy x) / s), where s is the sum of the row.
__global__ void __launch_bounds__(router_block)
    normalize_rows_backward(float* dx, const float* dy, const float* x, int tokens, int width, float total) {
  const std::size_t n = std::size_t{blockIdx.x} * router_block + threadIdx.x;
  if (n >= tokens) return;
  float sum = static_cast<float>(runtime::smallest_row_sum), dot = 0.0f;
  for (int k = 0; k < width; ++k) {
    sum += x[n * width + k];
    dot += x[n * width + k] * dy[n * width + k];
  }
  for (int k = 0; k < width; ++k) dx[n * width + k] = total / sum * (dy[n * width + k] - dot / sum);
}

}  // namespace

template <class T>
void softmax_top(const lane& on, at weights, at chosen, at logits, int tokens, int experts, int picks) {
  launch(on, "softmax_top", take_top<true, T>, ceil_div(tokens, tokens_of_block), router_block, 0,
         on.at<float>(weights), on.at<std::int32_t>(chosen), on.at<T>(logits), tokens, experts, picks);
}
template <class T>
void softmax_top_grad(const lane& on, at dlogits, at dweights, at logits, at chosen, int tokens, int experts,
                      int picks) {
  launch(on, "softmax_top_grad", take_top_backward<true, T>, ceil_div(tokens, tokens_of_block), router_block,
         0, on.at<T>(dlogits), on.at<float>(dweights), on.at<T>(logits), on.at<std::int32_t>(chosen), tokens,
         experts, picks);
}
template <class T>
void sigmoid_top(const lane& on, at weights, at chosen, at logits, int tokens, int experts, int picks) {
  launch(on, "sigmoid_top", take_top<false, T>, ceil_div(tokens, tokens_of_block), router_block, 0,
         on.at<float>(weights), on.at<std::int32_t>(chosen), on.at<T>(logits), tokens, experts, picks);
}
template <class T>
void sigmoid_top_grad(const lane& on, at dlogits, at dweights, at logits, at chosen, int tokens, int experts,
                      int picks) {
  launch(on, "sigmoid_top_grad", take_top_backward<false, T>, ceil_div(tokens, tokens_of_block), router_block,
         0, on.at<T>(dlogits), on.at<float>(dweights), on.at<T>(logits), on.at<std::int32_t>(chosen), tokens,
         experts, picks);
}

template <class T>
void normalize(const lane& on, at y, at x, int tokens, int width, double total) {
  launch(on, "normalize", normalize_rows, ceil_div(tokens, router_block), router_block, 0, on.at<float>(y),
         on.at<float>(x), tokens, width, total);
}
template <class T>
void normalize_grad(const lane& on, at dx, at dy, at x, int tokens, int width, double total) {
  launch(on, "normalize_grad", normalize_rows_backward, ceil_div(tokens, router_block), router_block, 0,
         on.at<float>(dx), on.at<float>(dy), on.at<float>(x), tokens, width, total);
}

template void softmax_top<float>(const lane&, at, at, at, int, int, int);
template void softmax_top<bf16>(const lane&, at, at, at, int, int, int);
template void softmax_top_grad<float>(const lane&, at, at, at, at, int, int, int);
template void softmax_top_grad<bf16>(const lane&, at, at, at, at, int, int, int);
template void sigmoid_top<float>(const lane&, at, at, at, int, int, int);
template void sigmoid_top<bf16>(const lane&, at, at, at, int, int, int);
template void sigmoid_top_grad<float>(const lane&, at, at, at, at, int, int, int);
template void sigmoid_top_grad<bf16>(const lane&, at, at, at, at, int, int, int);
template void normalize<float>(const lane&, at, at, int, int, double);
template void normalize<bf16>(const lane&, at, at, int, int, double);
template void normalize_grad<float>(const lane&, at, at, at, int, int, double);
template void normalize_grad<bf16>(const lane&, at, at, at, int, int, double);

}  // namespace rankc::runtime::cuda
