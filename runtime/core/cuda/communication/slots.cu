// SPDX-License-Identifier: Apache-2.0
#include "slots.hpp"

#include "../device/device.cuh"

namespace rankc::runtime::cuda {
namespace {

/// One block for each row of a slab.
template <int N, class T>
__global__ void __launch_bounds__(block_size)
    put_rows(T* slabs, const T* slots, const std::int32_t* offsets, runtime::slot_exchange by) {
  const int row = static_cast<int>(blockIdx.x), rank = row / by.slab,
            slot = by.first(offsets, rank) + row % by.slab;
  const bool is_slot = slot < by.end(offsets, rank);
  const std::size_t width = static_cast<std::size_t>(by.width);
  for (std::size_t c = threadIdx.x * std::size_t{N}; c < width; c += blockDim.x * std::size_t{N})
    store(slabs + row * width + c, is_slot ? load<T, N>(slots + slot * width + c) : pack<T, N>{});
}

/// The rank that holds the expert of a slot.
__device__ int owner_of(int slot, const std::int32_t* offsets, const runtime::slot_exchange& by) {
  int rank = 0;
  while (rank + 1 < by.ranks && slot >= by.first(offsets, rank + 1)) ++rank;
  return rank;
}

/// One block for each slot.
template <int N, class T>
__global__ void __launch_bounds__(block_size)
    take_rows(T* slots, const T* slabs, const std::int32_t* offsets, runtime::slot_exchange by) {
  const int slot = static_cast<int>(blockIdx.x), rank = owner_of(slot, offsets, by);
  const bool has_room = slot < by.end(offsets, rank);
  const std::size_t width = static_cast<std::size_t>(by.width),
                    row = static_cast<std::size_t>(rank * by.slab + slot - by.first(offsets, rank));
  for (std::size_t c = threadIdx.x * std::size_t{N}; c < width; c += blockDim.x * std::size_t{N})
    store(slots + slot * width + c, has_room ? load<T, N>(slabs + row * width + c) : pack<T, N>{});
}

/// One block for each slot. It sends the slot to this rank's slab on the rank that holds its expert, or
/// fetches it from there. A rank begins with the slots of the next rank, so that ranks do not all access one
/// rank's memory at a time.
/// Units: `received` in bytes from the start of an arena.
template <int N, bool Sends, class T>
__global__ void __launch_bounds__(block_size)
    move_rows(peer_group g, std::size_t received, T* slots, const std::int32_t* offsets,
              runtime::slot_exchange by) {
  if (g.words[g.place]->failed != 0) return;
  const int begin = by.first(offsets, (g.place + 1) % by.ranks);
  const int slot =
      static_cast<int>((blockIdx.x + static_cast<unsigned>(begin)) % static_cast<unsigned>(by.slots));
  const int rank = owner_of(slot, offsets, by);
  const bool has_room = slot < by.end(offsets, rank);
  if (Sends && !has_room) return;
  const std::size_t width = static_cast<std::size_t>(by.width),
                    row = static_cast<std::size_t>(g.place * by.slab + slot - by.first(offsets, rank));
  T* const here = slots + slot * width;
  T* const there = reinterpret_cast<T*>(g.arenas[rank] + received) + row * width;
  for (std::size_t c = threadIdx.x * std::size_t{N}; c < width; c += blockDim.x * std::size_t{N})
    if constexpr (Sends) store(there + c, load<T, N>(here + c));
    else store(here + c, has_room ? load<T, N>(there + c) : pack<T, N>{});
}

template <bool Sends, class T>
void move_slots(const lane& on, const peer_group& g, const T* received, T* slots, const std::int32_t* offsets,
                const runtime::slot_exchange& by) {
  const std::size_t at = g.offset_of(received);
  const dim3 rows = static_cast<unsigned>(by.slots);
  meet(on, g);
  if (packable<wide<T>>(static_cast<std::size_t>(by.width), slots, received))
    launch(on, "move_slots", move_rows<wide<T>, Sends, T>, rows, block_size, 0, g, at, slots, offsets, by);
  else launch(on, "move_slots", move_rows<1, Sends, T>, rows, block_size, 0, g, at, slots, offsets, by);
  meet(on, g);
}

/// The index of an expert's offset in the blocks of all ranks.
__device__ int in_blocks(const runtime::slot_exchange& by, int which, int expert) {
  const int each = by.experts_of_rank();
  return (expert / each * 2 + which) * each + expert % each;
}
__global__ void put_each(std::int32_t* blocks, const std::int32_t* offsets, runtime::slot_exchange by) {
  for (int i = static_cast<int>(threadIdx.x); i < 2 * by.experts; i += block_size)
    blocks[in_blocks(by, i / by.experts, i % by.experts)] =
        by.in_slab(offsets, i / by.experts, i % by.experts);
}
__global__ void take_each(std::int32_t* segments, const std::int32_t* blocks, runtime::slot_exchange by) {
  for (int i = static_cast<int>(threadIdx.x); i < 2 * by.experts; i += block_size) {
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
    launch(on, "put_into_slabs", put_rows<wide<T>, T>, rows, block_size, 0, slabs, slots, offsets, by);
  else launch(on, "put_into_slabs", put_rows<1, T>, rows, block_size, 0, slabs, slots, offsets, by);
}
template <class T>
void take_from_slabs(const lane& on, T* slots, const T* slabs, const std::int32_t* offsets,
                     const runtime::slot_exchange& by) {
  const dim3 rows = static_cast<unsigned>(by.slots);
  if (packable<wide<T>>(static_cast<std::size_t>(by.width), slots, slabs))
    launch(on, "take_from_slabs", take_rows<wide<T>, T>, rows, block_size, 0, slots, slabs, offsets, by);
  else launch(on, "take_from_slabs", take_rows<1, T>, rows, block_size, 0, slots, slabs, offsets, by);
}
template <class T>
void send_slots(const lane& on, const peer_group& g, T* received, const T* slots, const std::int32_t* offsets,
                const runtime::slot_exchange& by) {
  move_slots<true>(on, g, received, const_cast<T*>(slots), offsets, by);
}
template <class T>
void fetch_slots(const lane& on, const peer_group& g, T* slots, const T* received,
                 const std::int32_t* offsets, const runtime::slot_exchange& by) {
  move_slots<false>(on, g, received, slots, offsets, by);
}
void put_offsets(const lane& on, std::int32_t* blocks, const std::int32_t* offsets,
                 const runtime::slot_exchange& by) {
  launch(on, "put_offsets", put_each, 1, block_size, 0, blocks, offsets, by);
}
void take_offsets(const lane& on, std::int32_t* segments, const std::int32_t* blocks,
                  const runtime::slot_exchange& by) {
  launch(on, "take_offsets", take_each, 1, block_size, 0, segments, blocks, by);
}

template void put_into_slabs<float>(const lane&, float*, const float*, const std::int32_t*,
                                    const runtime::slot_exchange&);
template void put_into_slabs<bf16>(const lane&, bf16*, const bf16*, const std::int32_t*,
                                   const runtime::slot_exchange&);
template void take_from_slabs<float>(const lane&, float*, const float*, const std::int32_t*,
                                     const runtime::slot_exchange&);
template void take_from_slabs<bf16>(const lane&, bf16*, const bf16*, const std::int32_t*,
                                    const runtime::slot_exchange&);
template void send_slots<float>(const lane&, const peer_group&, float*, const float*, const std::int32_t*,
                                const runtime::slot_exchange&);
template void send_slots<bf16>(const lane&, const peer_group&, bf16*, const bf16*, const std::int32_t*,
                               const runtime::slot_exchange&);
template void fetch_slots<float>(const lane&, const peer_group&, float*, const float*, const std::int32_t*,
                                 const runtime::slot_exchange&);
template void fetch_slots<bf16>(const lane&, const peer_group&, bf16*, const bf16*, const std::int32_t*,
                                const runtime::slot_exchange&);

}  // namespace rankc::runtime::cuda
