// SPDX-License-Identifier: Apache-2.0
// What ranks with experts of their own send each other: slots put into slabs, and put back; offsets by the
// ranks they go to.
#pragma once
#include "peer_groups.hpp"

#include <rankc/runtime/slot_exchange.hpp>

#include <cstdint>

namespace rankc::runtime::cuda {

/// Rows of slots to the slabs of the ranks that have their experts; what is left of a slab is zeros.
/// Shapes: slabs (ranks * slab, width), slots (slots, width), offsets (2, experts).
template <class T>
void put_into_slabs(const lane&, T* slabs, const T* slots, const std::int32_t* offsets,
                    const runtime::slot_exchange&);

/// The other way. A slot that had no room is zeros.
template <class T>
void take_from_slabs(const lane&, T* slots, const T* slabs, const std::int32_t* offsets,
                     const runtime::slot_exchange&);

/// Both at once where the ranks' GPUs map each other: rows of slots to the slabs of this rank in `received`
/// of those that have their experts, and no others; what is left of a slab stays as it was.
template <class T>
void send_slots(const lane&, const peer_group&, T* received, const T* slots, const std::int32_t* offsets,
                const runtime::slot_exchange&);
/// The other way: slots are fetched. One that had no room is zeros.
template <class T>
void fetch_slots(const lane&, const peer_group&, T* slots, const T* received, const std::int32_t* offsets,
                 const runtime::slot_exchange&);

/// Of each rank's experts the offsets, counted from the begin of its slab on: blocks (ranks, 2, experts of a
/// rank).
void put_offsets(const lane&, std::int32_t* blocks, const std::int32_t* offsets,
                 const runtime::slot_exchange&);
/// What has come of each rank, counted from the begin of the first slab on. Shapes: segments (2, experts).
void take_offsets(const lane&, std::int32_t* segments, const std::int32_t* blocks,
                  const runtime::slot_exchange&);

}  // namespace rankc::runtime::cuda
