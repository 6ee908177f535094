// SPDX-License-Identifier: Apache-2.0
// The softmax of rows of scores that arrive tile by tile. A thread has parts of two rows, and four threads
// share a row.
// Source: Milakov and Gimelshein 2018 (online softmax).
#pragma once
#include "hopper_attention.cuh"

namespace rankc::runtime::cuda::hopper {

/// A weight is 2^(score * factor - top). `top` is the largest scaled score of the first tile. It rises to the
/// largest one of a later tile only if that exceeds it by more than `most_growth`. So weights stay below
/// 2^most_growth, and earlier sums are seldom rescaled.
class running_softmax {
 public:
  /// Turns the scores of the first tile into weights.
  __device__ __forceinline__ void begin(narrow_sums& p, float factor) {
    float most[2];
    find_most(most, p);
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      top_[row] = fmaxf(most_of_four(most[row]) * factor, lowest);
      total_[row] = 0.0f;
    }
    weigh(p, factor);
  }

  /// Turns the scores of a later tile into weights. Returns true, in all lanes of the warp, if earlier sums
  /// must be rescaled by `shrink`.
  __device__ __forceinline__ bool meet(narrow_sums& p, float factor) {
    float most[2];
    find_most(most, p);
    const bool grows = __any_sync(
        0xffffffffu, most[0] * factor > top_[0] + most_growth || most[1] * factor > top_[1] + most_growth);
    if (grows) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const float higher = fmaxf(top_[row], most_of_four(most[row]) * factor);
        by_[row] = two_to_the(top_[row] - higher);
        total_[row] *= by_[row];
        top_[row] = higher;
      }
    }
    weigh(p, factor);
    return grows;
  }
  template <int Parts>
  __device__ __forceinline__ void shrink(narrow_sums (&d)[Parts]) const {
    multiply(d, by_);
  }

  /// Completes the sums after the last tile.
  __device__ __forceinline__ void finish() {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
#pragma unroll
      for (int step = 1; step < 4; step *= 2) total_[row] += __shfl_xor_sync(0xffffffffu, total_[row], step);
      by_[row] = total_[row] > 0.0f ? 1.0f / total_[row] : 0.0f;  // 0: the row sees no key
    }
  }
  template <int Parts>
  __device__ __forceinline__ void divide(narrow_sums (&d)[Parts]) const {
    multiply(d, by_);
  }
  /// The log-sum-exp of a row.
  __device__ float logarithm(int row) const { return (top_[row] + log2f(total_[row])) / log2_e; }

 private:
  static constexpr float most_growth = 8.0f;
  // The top of a row that has seen no key. Its weights are then 0, not NaN.
  static constexpr float lowest = -1e30f;
  float top_[2], total_[2], by_[2];

  // Each row is reduced in two chains that do not wait for each other.
  __device__ static __forceinline__ void find_most(float (&most)[2], const narrow_sums& p) {
    float of_chain[2][2]{{p[0], p[4]}, {p[2], p[6]}};
#pragma unroll
    for (int i = 1; i < 32; ++i) of_chain[i / 2 % 2][i / 4 % 2] = fmaxf(of_chain[i / 2 % 2][i / 4 % 2], p[i]);
#pragma unroll
    for (int row = 0; row < 2; ++row) most[row] = fmaxf(of_chain[row][0], of_chain[row][1]);
  }
  __device__ __forceinline__ void weigh(narrow_sums& p, float factor) {
    float of_chain[2][2]{};
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      p[i] = two_to_the(p[i] * factor - top_[i / 2 % 2]);
      of_chain[i / 2 % 2][i / 4 % 2] += p[i];
    }
#pragma unroll
    for (int row = 0; row < 2; ++row) total_[row] += of_chain[row][0] + of_chain[row][1];
  }

  /// The maximum over the four threads that share a row.
  __device__ static __forceinline__ float most_of_four(float x) {
#pragma unroll
    for (int step = 1; step < 4; step *= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
  }
  template <int Parts>
  __device__ static __forceinline__ void multiply(narrow_sums (&d)[Parts], const float (&by)[2]) {
#pragma unroll
    for (int part = 0; part < Parts; ++part)
#pragma unroll
      for (int i = 0; i < 32; ++i) d[part][i] *= by[i / 2 % 2];
  }
};

}  // namespace rankc::runtime::cuda::hopper
