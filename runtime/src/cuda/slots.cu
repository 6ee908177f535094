// SPDX-License-Identifier: Apache-2.0
#include "slots.hpp"

#include "device.cuh"

namespace rankc::cuda {
namespace {

constexpr int block = 256;

/// A block to a row of a slab.
template <int N, class T>
__global__ void __launch_bounds__(block)
    put_rows(T* slabs, const T* slots, const std::int32_t* offsets, runtime::slot_exchange by) {
  const int row = static_cast<int>(blockIdx.x), rank = row / by.slab,
            slot = by.first(offsets, rank) + row % by.slab;
  const bool is_slot = slot < by.end(offsets, rank);
  const std::size_t width = static_cast<std::size_t>(by.width);
  for (std::size_t c = threadIdx.x * std::size_t{N}; c < width; c += blockDim.x * std::size_t{N})
    store(slabs + row * width + c, is_slot ? load<T, N>(slots + slot * width + c) : pack<T, N>{});
}

/// A block to a slot.
template <int N, class T>
__global__ void __launch_bounds__(block)
    take_rows(T* slots, const T* slabs, const std::int32_t* offsets, runtime::slot_exchange by) {
  const int slot = static_cast<int>(blockIdx.x);
  int rank = 0;
  while (rank + 1 < by.ranks && slot >= by.first(offsets, rank + 1)) ++rank;
  const bool has_room = slot < by.end(offsets, rank);
  const std::size_t width = static_cast<std::size_t>(by.width),
                    row = static_cast<std::size_t>(rank * by.slab + slot - by.first(offsets, rank));
  for (std::size_t c = threadIdx.x * std::size_t{N}; c < width; c += blockDim.x * std::size_t{N})
    store(slots + slot * width + c, has_room ? load<T, N>(slabs + row * width + c) : pack<T, N>{});
}

/// Where an offset of an expert lies among the blocks of all ranks.
__device__ int in_blocks(const runtime::slot_exchange& by, int which, int expert) {
  const int each = by.experts_of_rank();
  return (expert / each * 2 + which) * each + expert % each;
}
__global__ void put_each(std::int32_t* blocks, const std::int32_t* offsets, runtime::slot_exchange by) {
  for (int i = static_cast<int>(threadIdx.x); i < 2 * by.experts; i += block)
    blocks[in_blocks(by, i / by.experts, i % by.experts)] =
        by.in_slab(offsets, i / by.experts, i % by.experts);
}
__global__ void take_each(std::int32_t* segments, const std::int32_t* blocks, runtime::slot_exchange by) {
  for (int i = static_cast<int>(threadIdx.x); i < 2 * by.experts; i += block) {
    const int which = i / by.experts, expert = i % by.experts;
    segments[i] = blocks[in_blocks(by, which, expert)] + expert / by.experts_of_rank() * by.slab;
  }
}

}  // namespace

template <class T>
void put_into_slabs(const lane& on, T* slabs, const T* slots, const std::int32_t* offsets,
                    const runtime::slot_exchange& by) {
  const dim3 rows = static_cast<unsigned>(by.ranks * by.slab);
  if (packable<wide<T>>(static_cast<std::size_t>(by.width), slabs, slots))
    launch(on, "put_into_slabs", put_rows<wide<T>, T>, rows, block, 0, slabs, slots, offsets, by);
  else launch(on, "put_into_slabs", put_rows<1, T>, rows, block, 0, slabs, slots, offsets, by);
}
template <class T>
void take_from_slabs(const lane& on, T* slots, const T* slabs, const std::int32_t* offsets,
                     const runtime::slot_exchange& by) {
  const dim3 rows = static_cast<unsigned>(by.slots);
  if (packable<wide<T>>(static_cast<std::size_t>(by.width), slots, slabs))
    launch(on, "take_from_slabs", take_rows<wide<T>, T>, rows, block, 0, slots, slabs, offsets, by);
  else launch(on, "take_from_slabs", take_rows<1, T>, rows, block, 0, slots, slabs, offsets, by);
}
void put_offsets(const lane& on, std::int32_t* blocks, const std::int32_t* offsets,
                 const runtime::slot_exchange& by) {
  launch(on, "put_offsets", put_each, 1, block, 0, blocks, offsets, by);
}
void take_offsets(const lane& on, std::int32_t* segments, const std::int32_t* blocks,
                  const runtime::slot_exchange& by) {
  launch(on, "take_offsets", take_each, 1, block, 0, segments, blocks, by);
}

template void put_into_slabs<float>(const lane&, float*, const float*, const std::int32_t*,
                                    const runtime::slot_exchange&);
template void put_into_slabs<bf16>(const lane&, bf16*, const bf16*, const std::int32_t*,
                                   const runtime::slot_exchange&);
template void take_from_slabs<float>(const lane&, float*, const float*, const std::int32_t*,
                                     const runtime::slot_exchange&);
template void take_from_slabs<bf16>(const lane&, bf16*, const bf16*, const std::int32_t*,
                                    const runtime::slot_exchange&);

}  // namespace rankc::cuda
