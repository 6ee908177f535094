// SPDX-License-Identifier: Apache-2.0
#include "own_shards.hpp"

#include "../device/device.cuh"

#include <algorithm>

namespace rankc::runtime::cuda {
namespace {

constexpr std::size_t most_blocks_of_a_shard = 64, bytes_of_a_block = 65536;

/// The blocks along x share a shard. A thread moves one T at a time.
template <class T>
__global__ void __launch_bounds__(block_size) place(const own_shards of) {
  const own_shards::shard& s = of.shards[blockIdx.y];
  T* const to = reinterpret_cast<T*>(s.to);
  const T* const from = reinterpret_cast<const T*>(s.from);
  const std::size_t count = s.bytes / sizeof(T), step = std::size_t{gridDim.x} * block_size;
#pragma unroll 4
  for (std::size_t i = std::size_t{blockIdx.x} * block_size + threadIdx.x; i < count; i += step)
    to[i] = from[i];
}

/// True if all shards can be moved in units of T.
template <class T>
bool are_packable(const own_shards& of) {
  return std::all_of(of.shards, of.shards + of.many,
                     [](const own_shards::shard& s) { return packable<sizeof(T)>(s.bytes, s.to, s.from); });
}

}  // namespace

void place_own_shards(const lane& on, const own_shards& of) {
  std::size_t largest = 0;
  for (const own_shards::shard& s : of.shards) largest = std::max(largest, s.bytes);
  const dim3 grid(
      static_cast<unsigned>(std::clamp<std::size_t>(largest / bytes_of_a_block, 1, most_blocks_of_a_shard)),
      static_cast<unsigned>(of.many));
  if (are_packable<uint4>(of)) launch(on, "own shards", place<uint4>, grid, block_size, 0, of);
  else launch(on, "own shards", place<std::uint16_t>, grid, block_size, 0, of);
}

}  // namespace rankc::runtime::cuda
