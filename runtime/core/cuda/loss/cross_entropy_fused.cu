// SPDX-License-Identifier: Apache-2.0
// Cross entropy for a vocabulary that is not sharded. It reads the logits once for the row's maximum and sum
// (online softmax), and reads and writes them once for the gradient; or one kernel does both.
// Source: Milakov and Gimelshein 2018.
#include <rankc/runtime/cuda/fused.hpp>

#include "cross_entropy_hopper.hpp"
#include "cross_entropy_rows.cuh"

namespace rankc::runtime::cuda {
namespace {

constexpr int visit_threads = 1024;

/// top[n] = max over the row, sums[n] = (sum of exp(logit - top), the target's logit - top).
/// Shapes: top f32 (tokens), sums f32 (tokens, 2), logits (tokens, vocab), targets (tokens).
template <int N, class T>
__global__ void __launch_bounds__(logits_threads, logits_blocks)
    online_sums(float* top, float* sums, const T* logits, const std::int32_t* targets, int vocab) {
  const std::size_t token = blockIdx.x;
  logits += token * vocab;
  online_sum<T> row;
  walk_row<N>(logits, vocab, [&](int, const pack<T, N>& in) { row.take(in); });
  row.join_block();
  if (threadIdx.x != 0) return;
  top[token] = row.top;
  row.leave(sums + 2 * token, logits, targets[token], vocab);
}

/// dlogits = f (exp(logit - top) / sums0 - [column is the target]), where f is the factor of the token.
/// dlogits may be logits.
/// Shapes: dlogits, logits (tokens, vocab), sums f32 (tokens, 2), top f32 (tokens), targets (tokens).
template <int N, class T>
__global__ void __launch_bounds__(logits_threads, logits_blocks)
    softmax_backward(T* dlogits, const float* sums, const T* logits, const float* top,
                     const std::int32_t* targets, int vocab, int first, loss_factor factor) {
  const std::size_t token = blockIdx.x;
  const float scale = factor(targets[token], token);
  walk_gradient<N>(dlogits + token * vocab, logits + token * vocab, vocab, top[token],
                   scale / sums[2 * token], targets[token] - first, -scale);
}

/// Computes both. The second read is mostly from the L2 cache, because a multiprocessor processes one row at
/// a time.
template <int N, class T>
__global__ void __launch_bounds__(visit_threads, 1)
    sums_and_gradient(T* dlogits, float* sums, const T* logits, const std::int32_t* targets, int vocab,
                      loss_factor factor) {
  const std::size_t token = blockIdx.x;
  const int target = targets[token];
  const float scale = factor(target, token);
  logits += token * vocab;
  online_sum<T> row;
  walk_row<N>(logits, vocab, [&](int, const pack<T, N>& in) { row.take(in); });
  row.join_block();
  if (threadIdx.x == 0) row.leave(sums + 2 * token, logits, target, vocab);
  __syncthreads();  // before the target's logit is overwritten
  walk_gradient<N>(dlogits + token * vocab, logits, vocab, row.top, scale / row.sum, target, -scale);
}

template <class T>
void softmax_gradient(const lane& on, at dlogits, at sums, at logits, at top, at targets, int tokens,
                      int vocab, int first, const loss_factor& factor) {
  T *out = on.at<T>(dlogits), *row = on.at<T>(logits);
  launch_rows<T>(on, "softmax_grad", softmax_backward<wide<T>, T>, softmax_backward<1, T>,
                 packable<wide<T>>(vocab, out, row), tokens, vocab, out, on.at<float>(sums), row,
                 on.at<float>(top), on.at<std::int32_t>(targets), vocab, first, factor);
}

template <class T>
void softmax_sums_and_gradient(const lane& on, at dlogits, at sums, at logits, at targets, int tokens,
                               int vocab, const loss_factor& factor) {
  T *out = on.at<T>(dlogits), *row = on.at<T>(logits);
  float* made = on.at<float>(sums);
  const std::int32_t* ids = on.at<std::int32_t>(targets);
  const bool packs = packable<wide<T>>(vocab, out, row);
  if (packs && hopper_visits(on, vocab * sizeof(T)))
    return hopper_softmax_sums_grad(on, out, made, row, ids, tokens, vocab, factor);
  launch_rows<T, visit_threads>(on, "softmax_sums_grad", sums_and_gradient<wide<T>, T>,
                                sums_and_gradient<1, T>, packs, tokens, vocab, out, made, row, ids, vocab,
                                factor);
}

/// The factors of the tokens of a masked and of a weighted loss.
loss_factor masked(const lane& on, double scale, at count) {
  return {static_cast<float>(scale), on.at<float>(count)};
}
loss_factor weighted(const lane& on, double scale, at weights, at count) {
  return {static_cast<float>(scale), on.at<float>(count), on.at<float>(weights)};
}

}  // namespace

template <class T>
void softmax_sums(const lane& on, at top, at sums, at logits, at targets, int tokens, int vocab) {
  const T* row = on.at<T>(logits);
  launch_rows<T>(on, "softmax_sums", online_sums<wide<T>, T>, online_sums<1, T>,
                 packable<wide<T>>(vocab, row), tokens, vocab, on.at<float>(top), on.at<float>(sums), row,
                 on.at<std::int32_t>(targets), vocab);
}

template <class T>
void softmax_grad(const lane& on, at dlogits, at sums, at logits, at top, at targets, int tokens, int vocab,
                  int first, double scale) {
  softmax_gradient<T>(on, dlogits, sums, logits, top, targets, tokens, vocab, first,
                      {static_cast<float>(scale)});
}
template <class T>
void masked_softmax_grad(const lane& on, at dlogits, at sums, at logits, at top, at targets, at count,
                         int tokens, int vocab, int first, double scale) {
  softmax_gradient<T>(on, dlogits, sums, logits, top, targets, tokens, vocab, first,
                      masked(on, scale, count));
}
template <class T>
void weighted_softmax_grad(const lane& on, at dlogits, at sums, at logits, at top, at targets, at weights,
                           at count, int tokens, int vocab, int first, double scale) {
  softmax_gradient<T>(on, dlogits, sums, logits, top, targets, tokens, vocab, first,
                      weighted(on, scale, weights, count));
}

template <class T>
void softmax_sums_grad(const lane& on, at dlogits, at sums, at logits, at targets, int tokens, int vocab,
                       double scale) {
  softmax_sums_and_gradient<T>(on, dlogits, sums, logits, targets, tokens, vocab,
                               {static_cast<float>(scale)});
}
template <class T>
void masked_softmax_sums_grad(const lane& on, at dlogits, at sums, at logits, at targets, at count,
                              int tokens, int vocab, double scale) {
  softmax_sums_and_gradient<T>(on, dlogits, sums, logits, targets, tokens, vocab, masked(on, scale, count));
}
template <class T>
void weighted_softmax_sums_grad(const lane& on, at dlogits, at sums, at logits, at targets, at weights,
                                at count, int tokens, int vocab, double scale) {
  softmax_sums_and_gradient<T>(on, dlogits, sums, logits, targets, tokens, vocab,
                               weighted(on, scale, weights, count));
}

template void softmax_sums<float>(const lane&, at, at, at, at, int, int);
template void softmax_sums<bf16>(const lane&, at, at, at, at, int, int);
template void softmax_grad<float>(const lane&, at, at, at, at, at, int, int, int, double);
template void softmax_grad<bf16>(const lane&, at, at, at, at, at, int, int, int, double);
template void softmax_sums_grad<float>(const lane&, at, at, at, at, int, int, double);
template void softmax_sums_grad<bf16>(const lane&, at, at, at, at, int, int, double);
template void masked_softmax_grad<float>(const lane&, at, at, at, at, at, at, int, int, int, double);
template void masked_softmax_grad<bf16>(const lane&, at, at, at, at, at, at, int, int, int, double);
template void masked_softmax_sums_grad<float>(const lane&, at, at, at, at, at, int, int, double);
template void masked_softmax_sums_grad<bf16>(const lane&, at, at, at, at, at, int, int, double);
template void weighted_softmax_grad<float>(const lane&, at, at, at, at, at, at, at, int, int, int, double);
template void weighted_softmax_grad<bf16>(const lane&, at, at, at, at, at, at, at, int, int, int, double);
template void weighted_softmax_sums_grad<float>(const lane&, at, at, at, at, at, at, int, int, double);
template void weighted_softmax_sums_grad<bf16>(const lane&, at, at, at, at, at, at, int, int, double);

}  // namespace rankc::runtime::cuda
