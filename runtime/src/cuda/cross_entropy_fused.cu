// SPDX-License-Identifier: Apache-2.0
// Cross entropy where a rank holds the whole vocabulary: the row's maximum and sum in one reading (the online
// softmax), and the gradient in one reading and one writing. Source: Milakov and Gimelshein 2018.
#include <rankc/runtime/cuda/fused.hpp>

#include "cross_entropy_rows.cuh"

#include <cfloat>

namespace rankc::cuda {
namespace {

/// top[n] = max over the row, sums[n] = (sum of exp(logit - top), the target's logit - top). A thread's sum
/// is relative to the largest logit that it has seen, so a larger one scales it down. Shapes: top f32
/// (tokens), sums f32 (tokens, 2), logits (tokens, vocab), targets (tokens).
template <int N, class T>
__global__ void __launch_bounds__(logits_threads, logits_blocks)
    online_sums(float* top, float* sums, const T* logits, const std::int32_t* targets, int vocab) {
  const std::size_t token = blockIdx.x;
  logits += token * vocab;
  float most = -FLT_MAX / 2, sum = 0.0f;  // finite, also in powers of two, so that a logit of minus infinity counts for nothing
  walk_row<N>(logits, vocab, [&](int, const pack<T, N>& in) {
    float value[N];
    unpack(value, in);
    float largest = value[0];
    for (int i = 1; i < N; ++i) largest = fmaxf(largest, value[i]);
    if (largest > most) {
      sum *= exp_from<T>(largest)(most);
      most = largest;
    }
    const exp_from<T> weight(most);
    for (int i = 0; i < N; ++i) sum += weight(value[i]);
  });
  const float of_row = block_max(most);
  sum = block_sum(sum * exp_from<T>(of_row)(most));
  if (threadIdx.x != 0) return;
  const int target = targets[token];
  top[token] = of_row;
  sums[2 * token] = sum;
  sums[2 * token + 1] = target >= 0 && target < vocab ? to_float(logits[target]) - of_row : 0.0f;
}

/// dlogits = scale (exp(logit - top) / sums0 - [column is the target]). dlogits may be logits.
/// Shapes: dlogits, logits (tokens, vocab), sums f32 (tokens, 2), top f32 (tokens), targets (tokens).
template <int N, class T>
__global__ void __launch_bounds__(logits_threads, logits_blocks)
    softmax_backward(T* dlogits, const float* sums, const T* logits, const float* top,
                     const std::int32_t* targets, int vocab, int first, float scale) {
  const std::size_t token = blockIdx.x;
  walk_gradient<N>(dlogits + token * vocab, logits + token * vocab, vocab, top[token], scale / sums[2 * token], targets[token] - first, -scale);
}

}  // namespace

template <class T>
void softmax_sums(const lane& on, at top, at sums, at logits, at targets, int tokens, int vocab) {
  const T* row = on.at<T>(logits);
  launch_rows<T>(on, "softmax_sums", online_sums<wide<T>, T>, online_sums<1, T>, packable<wide<T>>(vocab, row),
                 tokens, vocab, on.at<float>(top), on.at<float>(sums), row, on.at<std::int32_t>(targets), vocab);
}

template <class T>
void softmax_grad(const lane& on, at dlogits, at sums, at logits, at top, at targets, int tokens, int vocab,
                  int first, double scale) {
  T *out = on.at<T>(dlogits), *row = on.at<T>(logits);
  launch_rows<T>(on, "softmax_grad", softmax_backward<wide<T>, T>, softmax_backward<1, T>,
                 packable<wide<T>>(vocab, out, row), tokens, vocab, out, on.at<float>(sums), row,
                 on.at<float>(top), on.at<std::int32_t>(targets), vocab, first, static_cast<float>(scale));
}

template void softmax_sums<float>(const lane&, at, at, at, at, int, int);
template void softmax_sums<bf16>(const lane&, at, at, at, at, int, int);
template void softmax_grad<float>(const lane&, at, at, at, at, at, int, int, int, double);
template void softmax_grad<bf16>(const lane&, at, at, at, at, at, int, int, int, double);

}  // namespace rankc::cuda
