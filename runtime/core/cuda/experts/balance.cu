// SPDX-License-Identifier: Apache-2.0
// Router statistics, summed over tokens, and their losses. Each layer has three rows with one number per
// expert: how often the expert was chosen, the sum of its scores, and a row that begins with the sum of
// log(sum(exp(logits)))^2 and the number of dropped choices. Sums have a fixed order.
#include <rankc/runtime/cuda/kernels.hpp>

#include "../device/column_sums.cuh"
#include "router_rows.cuh"

namespace rankc::runtime::cuda {
namespace {

constexpr int kinds_of_layer = runtime::kinds_of_statistics, most_blocks = runtime::blocks_of_statistics;

/// The factors of a row's scores, which are the softmax, or sigmoids divided by their sum. Returns the
/// softmax's largest logit and sum, or 0 and the sum of sigmoids.
template <bool Softmax, class T>
__device__ float2 scores_of_row(const T* x, int experts) {
  if constexpr (Softmax) return softmax_of_row(x, experts);
  float sum = 0.0f;
  for (int e = lane_of_warp(); e < experts; e += warp_size) sum += logistic(to_float(x[e]));
  return {0.0f, warp_sum(sum) + static_cast<float>(runtime::smallest_row_sum)};
}
template <bool Softmax>
__device__ float score(float x, const float2& row) {
  return (Softmax ? expf(x - row.x) : logistic(x)) / row.y;
}

/// Each block sums some tokens. A lane of a warp has every 32nd expert, so no two lanes add to one number.
/// Shapes: partial (blocks, 3, experts), logits (tokens, experts), chosen (tokens, picks); shared (warps, 3,
/// experts).
template <bool Softmax, class T>
__global__ void __launch_bounds__(router_block)
    sum_statistics(float* partial, const T* logits, const std::int32_t* chosen, int tokens, int experts,
                   int picks) {
  const int width = kinds_of_layer * experts;
  float* all = dynamic_shared();
  float* own = all + threadIdx.x / warp_size * width;
  for (int i = lane_of_warp(); i < width; i += warp_size) own[i] = 0.0f;
  __syncwarp();
  for (std::size_t n = token_of_warp(); n < tokens; n += std::size_t{gridDim.x} * tokens_of_block) {
    const T* x = logits + n * experts;
    for (int k = 0; k < picks; ++k)
      if (const int e = chosen[n * picks + k]; lane_of_warp() == e % warp_size) own[e] += 1.0f;
    const float2 row = scores_of_row<Softmax>(x, experts), exponentials = softmax_of_row(x, experts);
    for (int e = lane_of_warp(); e < experts; e += warp_size)
      own[experts + e] += score<Softmax>(to_float(x[e]), row);
    const float log_sum = exponentials.x + logf(exponentials.y);
    if (lane_of_warp() == 0) own[2 * experts] += log_sum * log_sum;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < width; i += router_block) {
    float sum = 0.0f;
    for (int warp = 0; warp < tokens_of_block; ++warp) sum += all[warp * width + i];
    partial[std::size_t{blockIdx.x} * width + i] = sum;
  }
}

/// For scores p with gradient d: p (d - sum(d p)), for sigmoids also times (1 - sigmoid); plus 2 log_sum
/// softmax times the gradient of the squares.
template <bool Softmax, class T>
__global__ void __launch_bounds__(router_block)
    statistics_backward(T* dlogits, const float* down, const T* logits, int tokens, int experts) {
  const std::size_t n = token_of_warp();
  if (n >= tokens) return;
  const T* x = logits + n * experts;
  const float2 row = scores_of_row<Softmax>(x, experts), exponentials = softmax_of_row(x, experts);
  float mean = 0.0f;
  for (int e = lane_of_warp(); e < experts; e += warp_size)
    mean += down[experts + e] * score<Softmax>(to_float(x[e]), row);
  mean = warp_sum(mean);
  const float of_squares = 2.0f * (exponentials.x + logf(exponentials.y)) * down[2 * experts];
  for (int e = lane_of_warp(); e < experts; e += warp_size) {
    const float logit = to_float(x[e]);
    float d = score<Softmax>(logit, row) * (down[experts + e] - mean);
    if constexpr (!Softmax) d *= 1.0f - logistic(logit);
    dlogits[n * experts + e] = from_float<T>(d + of_squares * score<true>(logit, exponentials));
  }
}

/// Counts the dropped choices.
/// Shapes: own (3, experts), places (all).
__global__ void __launch_bounds__(router_block)
    count_dropped(float* own, const std::int32_t* places, int all, int experts) {
  __shared__ int dropped;
  if (threadIdx.x == 0) dropped = 0;
  for (int i = threadIdx.x; i < kinds_of_layer * experts; i += router_block) own[i] = 0.0f;
  int mine = 0;
  for (int i = threadIdx.x; i < all; i += router_block) mine += places[i] < 0;
  __syncthreads();
  atomicAdd(&dropped, mine);  // integers, so any order gives the same sum
  __syncthreads();
  if (threadIdx.x == 0) own[2 * experts + 1] = static_cast<float>(dropped);
}

__global__ void __launch_bounds__(router_block)
    push_behind(float* y, const float* s, const float* own, int width, int own_width) {
  const int i = blockIdx.x * router_block + threadIdx.x, kept = width - own_width;
  if (i < width) y[i] = i < kept ? s[i + own_width] : own[i - kept];
}
__global__ void __launch_bounds__(router_block)
    push_backward(float* ds, float* down, const float* dy, int width, int own_width) {
  const int i = blockIdx.x * router_block + threadIdx.x, kept = width - own_width;
  if (i >= width) return;
  ds[i] = i < own_width ? 0.0f : dy[i - own_width];
  if (i >= kept) down[i - kept] = dy[i];
}

enum class loss_kind { balance, layer_balance, z, overflow };

/// The coefficient of element i of `s` in a loss that is linear in `s`. It is nonzero for scores, or for the
/// first element of a row of squares. For an overflow `scale` is a logarithm; without dropped choices the
/// coefficient is 0.
template <loss_kind Kind>
__device__ float factor_of(const float* whole, int i, int kinds, int experts, float scale) {
  const int layer = i / (kinds_of_layer * experts), kind = i / experts % kinds_of_layer, expert = i % experts;
  if constexpr (Kind == loss_kind::overflow) {
    const float dropped = whole[(kinds_of_layer * layer + 2) * experts + 1];
    return kind != 2 || expert != 0 || dropped == 0.0f ? 0.0f : dropped * expf(scale);
  } else if constexpr (Kind == loss_kind::z) {
    if (kind != 2 || expert != 0) return 0.0f;
    float choices = 0.0f;
    for (int e = 0; e < experts; ++e) choices += whole[kinds_of_layer * layer * experts + e];
    return scale / choices;
  } else {
    if (kind != 1) return 0.0f;
    if constexpr (Kind == loss_kind::layer_balance)
      return scale * whole[kinds_of_layer * layer * experts + expert];
    float choices = 0.0f;
    for (int l = 0; l < kinds / kinds_of_layer; ++l) choices += whole[kinds_of_layer * l * experts + expert];
    return scale * choices;
  }
}
/// One block, so that the sum has one order.
template <loss_kind Kind>
__global__ void __launch_bounds__(router_block)
    loss_of_statistics(float* loss, const float* whole, const float* s, int kinds, int experts, float scale,
                       bool accumulate) {
  float sum = 0.0f;
  for (int i = threadIdx.x; i < kinds * experts; i += router_block)
    if (const float f = factor_of<Kind>(whole, i, kinds, experts, scale); f != 0.0f) sum += f * s[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *loss = (accumulate ? *loss : 0.0f) + sum;
}
template <loss_kind Kind>
__global__ void __launch_bounds__(router_block)
    loss_backward(float* ds, const float* whole, int kinds, int experts, float scale) {
  const int i = blockIdx.x * router_block + threadIdx.x;
  if (i < kinds * experts) ds[i] = factor_of<Kind>(whole, i, kinds, experts, scale);
}

template <bool Softmax, class T>
void statistics(const lane& on, const char* name, at own, at scratch, at logits, at chosen, int tokens,
                int experts, int picks) {
  const int width = kinds_of_layer * experts, needed = ceil_div(tokens, tokens_of_block),
            blocks = needed < most_blocks ? needed : most_blocks;
  launch(on, name, sum_statistics<Softmax, T>, blocks, router_block, sizeof(float) * tokens_of_block * width,
         on.at<float>(scratch), on.at<T>(logits), on.at<std::int32_t>(chosen), tokens, experts, picks);
  launch(on, name, sum_partials<1>, ceil_div(width, warp_size), dim3(warp_size, warp_size), 0,
         sum_targets<1>{{on.at<float>(own)}}, static_cast<const float*>(on.at<float>(scratch)), blocks, width,
         false);
}
template <loss_kind Kind>
void make_loss(const lane& on, const char* name, at loss, at whole, at s, int kinds, int experts,
               double scale, bool accumulate) {
  launch(on, name, loss_of_statistics<Kind>, 1, router_block, 0, on.at<float>(loss), on.at<float>(whole),
         on.at<float>(s), kinds, experts, scale, accumulate);
}
template <loss_kind Kind>
void derive_loss(const lane& on, const char* name, at ds, at whole, int kinds, int experts, double scale) {
  launch(on, name, loss_backward<Kind>, ceil_div(kinds * experts, router_block), router_block, 0,
         on.at<float>(ds), on.at<float>(whole), kinds, experts, scale);
}

}  // namespace

template <class T>
void softmax_statistics(const lane& on, at own, at scratch, at logits, at chosen, int tokens, int experts,
                        int picks) {
  statistics<true, T>(on, "softmax_statistics", own, scratch, logits, chosen, tokens, experts, picks);
}
template <class T>
void sigmoid_statistics(const lane& on, at own, at scratch, at logits, at chosen, int tokens, int experts,
                        int picks) {
  statistics<false, T>(on, "sigmoid_statistics", own, scratch, logits, chosen, tokens, experts, picks);
}
template <class T>
void softmax_statistics_grad(const lane& on, at dlogits, at down, at logits, int tokens, int experts) {
  launch(on, "softmax_statistics_grad", statistics_backward<true, T>, ceil_div(tokens, tokens_of_block),
         router_block, 0, on.at<T>(dlogits), on.at<float>(down), on.at<T>(logits), tokens, experts);
}
template <class T>
void sigmoid_statistics_grad(const lane& on, at dlogits, at down, at logits, int tokens, int experts) {
  launch(on, "sigmoid_statistics_grad", statistics_backward<false, T>, ceil_div(tokens, tokens_of_block),
         router_block, 0, on.at<T>(dlogits), on.at<float>(down), on.at<T>(logits), tokens, experts);
}

template <class T>
void dropped_statistics(const lane& on, at own, at places, int tokens, int picks, int experts) {
  launch(on, "dropped_statistics", count_dropped, 1, router_block, 0, on.at<float>(own),
         on.at<std::int32_t>(places), tokens * picks, experts);
}

template <class T>
void push(const lane& on, at y, at s, at own, int width, int own_width) {
  launch(on, "push", push_behind, ceil_div(width, router_block), router_block, 0, on.at<float>(y),
         on.at<float>(s), on.at<float>(own), width, own_width);
}
template <class T>
void push_grad(const lane& on, at ds, at down, at dy, int width, int own_width) {
  launch(on, "push_grad", push_backward, ceil_div(width, router_block), router_block, 0, on.at<float>(ds),
         on.at<float>(down), on.at<float>(dy), width, own_width);
}

template <class T>
void balance_loss(const lane& on, at loss, at whole, at s, int kinds, int experts, double scale,
                  bool accumulate) {
  make_loss<loss_kind::balance>(on, "balance_loss", loss, whole, s, kinds, experts, scale, accumulate);
}
template <class T>
void balance_loss_grad(const lane& on, at ds, at whole, int kinds, int experts, double scale) {
  derive_loss<loss_kind::balance>(on, "balance_loss_grad", ds, whole, kinds, experts, scale);
}
template <class T>
void layer_balance_loss(const lane& on, at loss, at whole, at s, int kinds, int experts, double scale,
                        bool accumulate) {
  make_loss<loss_kind::layer_balance>(on, "layer_balance_loss", loss, whole, s, kinds, experts, scale,
                                      accumulate);
}
template <class T>
void layer_balance_loss_grad(const lane& on, at ds, at whole, int kinds, int experts, double scale) {
  derive_loss<loss_kind::layer_balance>(on, "layer_balance_loss_grad", ds, whole, kinds, experts, scale);
}
template <class T>
void z_loss(const lane& on, at loss, at whole, at s, int kinds, int experts, double scale, bool accumulate) {
  make_loss<loss_kind::z>(on, "z_loss", loss, whole, s, kinds, experts, scale, accumulate);
}
template <class T>
void z_loss_grad(const lane& on, at ds, at whole, int kinds, int experts, double scale) {
  derive_loss<loss_kind::z>(on, "z_loss_grad", ds, whole, kinds, experts, scale);
}
template <class T>
void overflow_loss(const lane& on, at loss, at whole, at s, int kinds, int experts, double log_scale,
                   bool accumulate) {
  make_loss<loss_kind::overflow>(on, "overflow_loss", loss, whole, s, kinds, experts, log_scale, accumulate);
}
template <class T>
void overflow_loss_grad(const lane& on, at ds, at whole, int kinds, int experts, double log_scale) {
  derive_loss<loss_kind::overflow>(on, "overflow_loss_grad", ds, whole, kinds, experts, log_scale);
}

#define RANKC_FOR(kernel)                         \
  template decltype(kernel<float>) kernel<float>; \
  template decltype(kernel<bf16>) kernel<bf16>;
RANKC_FOR(softmax_statistics)
RANKC_FOR(softmax_statistics_grad)
RANKC_FOR(sigmoid_statistics)
RANKC_FOR(sigmoid_statistics_grad)
RANKC_FOR(dropped_statistics)
RANKC_FOR(push)
RANKC_FOR(push_grad)
RANKC_FOR(balance_loss)
RANKC_FOR(balance_loss_grad)
RANKC_FOR(layer_balance_loss)
RANKC_FOR(layer_balance_loss_grad)
RANKC_FOR(z_loss)
RANKC_FOR(z_loss_grad)
RANKC_FOR(overflow_loss)
RANKC_FOR(overflow_loss_grad)
#undef RANKC_FOR

}  // namespace rankc::runtime::cuda
