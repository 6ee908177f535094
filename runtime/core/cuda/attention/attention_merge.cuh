// SPDX-License-Identifier: Apache-2.0
// The common parts of attention in blocks: the queries of a block, the sizes of blocks, and the merge of two
// results by their log-sum-exp.
#pragma once
#include "attention_fused.hpp"
#include "../device/device.cuh"

namespace rankc::runtime::cuda {

inline constexpr int block = 256;

/// Queries [first, count) of each row.
struct queries {
  int rows, count, first, heads, dim;
  __host__ __device__ std::size_t some() const { return static_cast<std::size_t>(rows) * (count - first); }
  /// The index of query i of these among all tokens.
  __device__ std::size_t token(std::size_t i) const {
    return i / (count - first) * count + first + i % (count - first);
  }
  /// The index of a token's statistics for a head.
  __device__ std::size_t statistic(std::size_t token, int head) const {
    return (token / count * heads + head) * count + token % count;
  }
};

/// o = the weighted mean of `before` and `more`. The weights are their sums of exponentials. o may be
/// `before`.
template <int N, class T>
__global__ void __launch_bounds__(block)
    merge_outputs(T* o, const T* before, const T* more, const float* lse_before, const float* lse_more,
                  queries q) {
  const int width = q.heads * q.dim, packs = width / N;
  const std::size_t item = std::size_t{blockIdx.x} * block + threadIdx.x, i = item / packs;
  if (i >= q.some()) return;
  const int column = static_cast<int>(item % packs) * N;
  const std::size_t token = q.token(i), at = token * width + column, of = q.statistic(token, column / q.dim);
  const float share = 1.0f / (1.0f + expf(lse_before[of] - lse_more[of]));  // the weight of `more`
  float a[N], b[N];
  unpack(a, load<T, N>(before + at));
  unpack(b, load<T, N>(more + at));
  for (int n = 0; n < N; ++n) a[n] += share * (b[n] - a[n]);
  store(o + at, packed<T>(a));
}

/// lse = log(exp(before) + exp(more)). lse may be `before`.
__global__ static void __launch_bounds__(block)
    merge_sums(float* lse, const float* before, const float* more, queries q) {
  const std::size_t item = std::size_t{blockIdx.x} * block + threadIdx.x, i = item / q.heads;
  if (i >= q.some()) return;
  const std::size_t at = q.statistic(q.token(i), static_cast<int>(item % q.heads));
  const float a = before[at], b = more[at], top = fmaxf(a, b);
  lse[at] = top + log1pf(expf(fminf(a, b) - top));
}

template <class T>
void merge(const lane& on, T* o, float* lse, const T* before, const float* lse_before, const T* more,
           const float* lse_more, const queries& q) {
  constexpr int n = wide<T>;
  const auto run = [&](auto* kernel, int each) {
    launch(on, "merge_attention", kernel, ceil_div(q.some() * q.heads * q.dim, block * each), block, 0, o,
           before, more, lse_before, lse_more, q);
  };
  q.dim % n == 0 ? run(merge_outputs<n, T>, n) : run(merge_outputs<1, T>, 1);
  launch(on, "merge_attention", merge_sums, ceil_div(q.some() * q.heads, block), block, 0, lse, lse_before,
         lse_more, q);
}

/// The sizes of a rank's blocks: with its own keys, with those of an earlier rank, and with those of a later
/// rank.
struct attention_blocks {
  attention_sizes own, before = own, behind = own;
  explicit attention_blocks(const attention_sizes& s) : own(s) {
    before.apart = behind.apart = s.seq;
    before.keys = s.seq / 2;
    behind.keys = s.seq;
    behind.seq = s.seq / 2;
  }
};

}  // namespace rankc::runtime::cuda
