// SPDX-License-Identifier: Apache-2.0
// Teams of warps, each of which keeps one token's row in registers. A team has blockDim.x threads, and a
// block holds blockDim.y teams. Thread t of a team has the packs t, t + blockDim.x, ... of its row.
#pragma once
#include "device.cuh"

#include <algorithm>

namespace rankc::runtime::cuda {

/// The widest row that fits into registers. Wider rows are an error.
inline constexpr int widest_row = 32768;

inline void check_width(const lane& on, const char* name, int width) {
  if (width > widest_row)
    fail(on, "RC5137: {}: the width is {}; it must be at most {}", name, width, widest_row);
}

/// The sums of the calling thread's team. A team of one warp needs no barrier. A larger team uses barrier 1 +
/// threadIdx.y, so a block holds at most 15 of them.
class team {
 public:
  /// Replaces every x[k] by its sum over the team, in a fixed order. All threads of the team call it.
  template <int K>
  __device__ void sum(float (&x)[K]) {
    for (int k = 0; k < K; ++k) x[k] = warp_sum(x[k]);
    if (blockDim.x == warp_size) return;
    __shared__ float of_warp[2][warp_size][K];
    const int warps = blockDim.x / warp_size, first = threadIdx.y * warps;
    if (threadIdx.x % warp_size == 0)
      for (int k = 0; k < K; ++k) of_warp[turn_][first + threadIdx.x / warp_size][k] = x[k];
    asm volatile("bar.sync %0, %1;" ::"r"(1 + threadIdx.y), "r"(blockDim.x) : "memory");
    for (int k = 0; k < K; ++k) x[k] = 0.0f;
    for (int w = 0; w < warps; ++w)
      for (int k = 0; k < K; ++k) x[k] += of_warp[turn_][first + w][k];
    turn_ ^= 1;  // the next call writes the buffer that no thread reads any more
  }
  __device__ float sum(float x) {
    float one[1] = {x};
    sum(one);
    return one[0];
  }

 private:
  int turn_ = 0;
};

/// The first column of the calling thread's pack number p.
template <int N>
__device__ int team_column(int p) {
  return static_cast<int>(p * blockDim.x + threadIdx.x) * N;
}

/// A block of teams for rows of `packs` packs, with `each` packs per thread and about `threads` threads in
/// all.
inline dim3 team_block(int packs, int each, int threads) {
  const int warps = ceil_div(packs, warp_size * each);
  const int teams = threads / (warps * warp_size);
  return dim3(warps * warp_size, std::clamp(teams, 1, 15));
}

}  // namespace rankc::runtime::cuda
