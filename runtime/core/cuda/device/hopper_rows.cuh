// SPDX-License-Identifier: Apache-2.0
// Staging rows of 128 bytes in shared memory, for blocks that use the copy engine and the tensor cores. Sums
// go through them from registers to device memory.
#pragma once
#include "device.cuh"
#include "hopper.cuh"

namespace rankc::runtime::cuda::hopper {

inline constexpr int warps_of_group = 4;
inline constexpr int staged_bytes = 16 * 128;  // 16 rows of 128 bytes: stored by a warp at a time
inline constexpr int alignment = 1024;         // for boxes

__device__ inline std::byte* aligned_shared() {
  std::byte* raw = reinterpret_cast<std::byte*>(dynamic_shared());
  return raw + (alignment - __cvta_generic_to_shared(raw) % alignment) % alignment;
}

__device__ inline bool first_of_warp() { return threadIdx.x % warp_size == 0; }

/// The offset of 16 bytes in the staged rows. Rows that are accessed together have no bank conflicts.
__device__ inline int piece(int row, int column) {
  return row * 128 + ((column ^ ((row << 1 & 6) | (row >> 2 & 1))) << 4);
}

/// Writes a warp's sums for 128 bytes of columns, from d[first] on, to its stage.
template <int N>
__device__ void stage_sums(std::byte* to, const float (&d)[N], int first, bf16) {
  const int lane = threadIdx.x % warp_size, row = lane % 16, column = lane / 16;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    unsigned two[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const __nv_bfloat162 rounded =
          __floats2bfloat162_rn(d[first + 8 * i + 2 * j], d[first + 8 * i + 2 * j + 1]);
      two[j] = reinterpret_cast<const unsigned&>(rounded);
    }
    store_matrices(address_of(to + piece(row, 2 * i + column)), two[0], two[1], two[2], two[3]);
  }
}

}  // namespace rankc::runtime::cuda::hopper
