// SPDX-License-Identifier: Apache-2.0
// Cross entropy over a vocabulary that may be sharded. A block processes a token's row of logits. Between the
// kernels the ranks exchange one or two numbers per token.
// Source: Megatron-LM (Shoeybi et al. 2019).
#include <rankc/runtime/cuda/kernels.hpp>

#include "cross_entropy_rows.cuh"

namespace rankc::runtime::cuda {
namespace {

/// top[n] = max over the row. Shapes: logits (tokens, vocab), top f32 (tokens).
template <int N, class T>
__global__ void __launch_bounds__(logits_threads, logits_blocks)
    row_maxima(float* top, const T* logits, int vocab) {
  const std::size_t token = blockIdx.x;
  float most = -INFINITY;
  walk_row<N>(logits + token * vocab, vocab, [&](int, const pack<T, N>& in) {
    for (int i = 0; i < N; ++i) most = fmaxf(most, to_float(in.element[i]));
  });
  most = block_max(most);
  if (threadIdx.x == 0) top[token] = most;
}

/// sums[n] = (sum of exp(logit - top), the target's logit - top or 0 if another rank holds the target).
/// Shapes: sums f32 (tokens, 2), logits (tokens, vocab), top f32 (tokens), targets (tokens).
template <int N, class T>
__global__ void __launch_bounds__(logits_threads, logits_blocks)
    row_sums(float* sums, const T* logits, const float* top, const std::int32_t* targets, int vocab,
             int first) {
  const std::size_t token = blockIdx.x;
  logits += token * vocab;
  const float most = top[token];
  const exp_from<T> weight(most);
  float sum = 0.0f;
  walk_row<N>(logits, vocab, [&](int, const pack<T, N>& in) {
    for (int i = 0; i < N; ++i) sum += weight(to_float(in.element[i]));
  });
  sum = block_sum(sum);
  if (threadIdx.x != 0) return;
  const int target = targets[token] - first;
  sums[2 * token] = sum;
  sums[2 * token + 1] = target >= 0 && target < vocab ? to_float(logits[target]) - most : 0.0f;
}

/// dlogits = dsums0 exp(logit - top) + dsums1 [column is the target]. dlogits may be logits.
/// Shapes: dlogits, logits (tokens, vocab), dsums f32 (tokens, 2), top f32 (tokens), targets (tokens).
template <int N, class T>
__global__ void __launch_bounds__(logits_threads, logits_blocks)
    row_sums_backward(T* dlogits, const float* dsums, const T* logits, const float* top,
                      const std::int32_t* targets, int vocab, int first) {
  const std::size_t token = blockIdx.x;
  walk_gradient<N>(dlogits + token * vocab, logits + token * vocab, vocab, top[token], dsums[2 * token],
                   targets[token] - first, dsums[2 * token + 1]);
}

constexpr int loss_threads = 1024;

/// loss = or += scale * sum over tokens of log(sums0) - sums1, by one block.
__global__ void loss_of(float* loss, const float* sums, int tokens, float scale, bool accumulate) {
  float sum = 0.0f;
#pragma unroll 8
  for (int n = threadIdx.x; n < tokens; n += loss_threads) {
    const float* of_token = sums + 2 * static_cast<std::size_t>(n);
    sum += logf(of_token[0]) - of_token[1];
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) *loss = (accumulate ? *loss : 0.0f) + scale * sum;
}

/// dsums = (scale / sums0, -scale). Shapes: dsums, sums f32 (tokens, 2).
__global__ void loss_backward(float* dsums, const float* sums, int tokens, float scale) {
  const std::size_t n = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (n >= static_cast<std::size_t>(tokens)) return;
  dsums[2 * n] = scale / sums[2 * n];
  dsums[2 * n + 1] = -scale;
}

}  // namespace

template <class T>
void row_max(const lane& on, at top, at logits, int tokens, int vocab) {
  const T* row = on.at<T>(logits);
  launch_rows<T>(on, "row_max", row_maxima<wide<T>, T>, row_maxima<1, T>, packable<wide<T>>(vocab, row),
                 tokens, vocab, on.at<float>(top), row, vocab);
}

template <class T>
void exp_sums(const lane& on, at sums, at logits, at top, at targets, int tokens, int vocab, int first) {
  const T* row = on.at<T>(logits);
  launch_rows<T>(on, "exp_sums", row_sums<wide<T>, T>, row_sums<1, T>, packable<wide<T>>(vocab, row), tokens,
                 vocab, on.at<float>(sums), row, on.at<float>(top), on.at<std::int32_t>(targets), vocab,
                 first);
}

template <class T>
void exp_sums_grad(const lane& on, at dlogits, at dsums, at logits, at top, at targets, int tokens, int vocab,
                   int first) {
  T *out = on.at<T>(dlogits), *row = on.at<T>(logits);
  launch_rows<T>(on, "exp_sums_grad", row_sums_backward<wide<T>, T>, row_sums_backward<1, T>,
                 packable<wide<T>>(vocab, out, row), tokens, vocab, out, on.at<float>(dsums), row,
                 on.at<float>(top), on.at<std::int32_t>(targets), vocab, first);
}

template <class T>
void cross_entropy(const lane& on, at loss, at sums, int tokens, double scale, bool accumulate) {
  launch(on, "cross_entropy", loss_of, 1, loss_threads, 0, on.at<float>(loss), on.at<float>(sums), tokens,
         scale, accumulate);
}

template <class T>
void cross_entropy_grad(const lane& on, at dsums, at sums, int tokens, double scale) {
  launch(on, "cross_entropy_grad", loss_backward, ceil_div(tokens, 256), 256, 0, on.at<float>(dsums),
         on.at<float>(sums), tokens, scale);
}

template void row_max<float>(const lane&, at, at, int, int);
template void row_max<bf16>(const lane&, at, at, int, int);
template void exp_sums<float>(const lane&, at, at, at, at, int, int, int);
template void exp_sums<bf16>(const lane&, at, at, at, at, int, int, int);
template void exp_sums_grad<float>(const lane&, at, at, at, at, at, int, int, int);
template void exp_sums_grad<bf16>(const lane&, at, at, at, at, at, int, int, int);
template void cross_entropy<float>(const lane&, at, at, int, double, bool);
template void cross_entropy<bf16>(const lane&, at, at, int, double, bool);
template void cross_entropy_grad<float>(const lane&, at, at, int, double);
template void cross_entropy_grad<bf16>(const lane&, at, at, int, double);

}  // namespace rankc::runtime::cuda
