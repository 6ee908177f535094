// SPDX-License-Identifier: Apache-2.0
// LayerNorm and RMSNorm of a row that a team holds in registers.
// Source: Ba et al. 2016; Zhang and Sennrich 2019.
#pragma once
#include "../device/team.cuh"

namespace rankc::runtime::cuda {

inline constexpr int norm_block = 256, most_norm_threads = 512;

/// The mean is 0 for RMSNorm.
struct row_statistics {
  float mean, scale;
};

/// The statistics of the row of the calling thread's team. All threads of the team call it.
template <bool Centred, int N, int P, class T>
__device__ row_statistics statistics_of(team& mine, pack<T, N> (&row)[P], int width, float eps) {
  float mean = 0.0f;
  if constexpr (Centred) {
#pragma unroll
    for (int p = 0; p < P; ++p) {
      if (team_column<N>(p) >= width) break;
      float value[N];
      unpack(value, row[p]);
      for (int i = 0; i < N; ++i) mean += value[i];
    }
    mean = mine.sum(mean) / width;
#pragma unroll
    for (int p = 0; p < P; ++p) forget(row[p]);
  }
  float squares = 0.0f;
#pragma unroll
  for (int p = 0; p < P; ++p) {
    if (team_column<N>(p) >= width) break;
    float value[N];
    unpack(value, row[p]);
    for (int i = 0; i < N; ++i) squares += (value[i] - mean) * (value[i] - mean);
  }
  return {mean, 1.0f / sqrtf(mine.sum(squares) / width + eps)};
}

/// Stores the statistics for backward.
/// Shapes: stats f32 (tokens, 2) mean and 1/std if Centred, else (tokens) 1/rms.
template <bool Centred>
__device__ void store_statistics(float* stats, std::size_t token, const row_statistics& of) {
  if constexpr (Centred) {
    stats[2 * token] = of.mean;
    stats[2 * token + 1] = of.scale;
  } else stats[token] = of.scale;
}
template <bool Centred>
__device__ row_statistics load_statistics(const float* stats, std::size_t token) {
  if constexpr (Centred) return {stats[2 * token], stats[2 * token + 1]};
  else return {0.0f, stats[token]};
}

/// value = (value - mean) scale gain (+ shift), for N columns from `column` on.
template <bool Centred, int N, class T>
__device__ void normalize(float (&value)[N], const row_statistics& of, const T* gain, const T* shift,
                          int column) {
  float g[N];
  unpack(g, load<T, N>(gain + column));
  for (int i = 0; i < N; ++i) value[i] = (value[i] - of.mean) * of.scale * g[i];
  if constexpr (Centred) {
    unpack(g, load<T, N>(shift + column));
    for (int i = 0; i < N; ++i) value[i] += g[i];
  }
}

/// The split of a row by its width: call<N, P>() for P packs of N elements per thread.
template <class T, class Call>
void with_norm_packs(int width, bool packs, Call call) {
  if constexpr (sizeof(T) == 2)
    if (packs) {
      if (width <= warp_size * 8) return call.template operator()<8, 1>();
      if (width <= warp_size * 32) return call.template operator()<8, 4>();
      return call.template operator()<8, 8>();
    }
  if (width <= most_norm_threads * 8) call.template operator()<1, 8>();
  else call.template operator()<1, 64>();
}

}  // namespace rankc::runtime::cuda
