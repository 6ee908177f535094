// SPDX-License-Identifier: Apache-2.0
// A token's logits, processed by a warp: the largest of them, and their scores.
#pragma once
#include <rankc/contract/router.hpp>

#include "../device/device.cuh"

namespace rankc::runtime::cuda {

inline constexpr int router_block = 256, tokens_of_block = router_block / warp_size;

__device__ inline std::size_t token_of_warp() {
  return std::size_t{blockIdx.x} * tokens_of_block + threadIdx.x / warp_size;
}
__device__ inline int lane_of_warp() { return static_cast<int>(threadIdx.x % warp_size); }

/// An expert and its logit. Ties go to the lower expert. NaN is the lowest logit.
struct pick {
  float logit;
  int expert;
  __device__ bool comes_before(const pick& other) const {
    return logit > other.logit || (logit == other.logit && expert < other.expert);
  }
};

/// The first of a row that comes after `last`, found by the whole warp. `score(e)` is the score of expert e.
template <class Score>
__device__ pick next_largest(const Score& score, int experts, const pick& last) {
  pick best{-INFINITY, experts};
  for (int e = lane_of_warp(); e < experts; e += warp_size)
    if (const pick p{fmaxf(score(e), -INFINITY), e}; last.comes_before(p) && p.comes_before(best)) best = p;
  for (int step = warp_size / 2; step > 0; step /= 2) {
    const pick other{__shfl_xor_sync(0xffffffffu, best.logit, step),
                     __shfl_xor_sync(0xffffffffu, best.expert, step)};
    if (other.comes_before(best)) best = other;
  }
  return best;
}
template <class T>
struct logits_of_row {
  const T* x;
  __device__ float operator()(int e) const { return to_float(x[e]); }
};
template <class T>
__device__ pick next_pick(const T* x, int experts, const pick& last) {
  return next_largest(logits_of_row<T>{x}, experts, last);
}

/// The largest logit of a row, and the sum of exp(logit - largest).
template <class T>
__device__ float2 softmax_of_row(const T* x, int experts) {
  float top = -INFINITY, sum = 0.0f;
  for (int e = lane_of_warp(); e < experts; e += warp_size) top = fmaxf(top, to_float(x[e]));
  top = warp_max(top);
  for (int e = lane_of_warp(); e < experts; e += warp_size) sum += expf(to_float(x[e]) - top);
  return {top, warp_sum(sum)};
}

__device__ inline float logistic(float x) { return 1.0f / (1.0f + expf(-x)); }

}  // namespace rankc::runtime::cuda
