// SPDX-License-Identifier: Apache-2.0
// Packing and unpacking for expert parallelism: slots to and from slabs, and offsets by destination rank.
#pragma once
#include "peer_groups.hpp"

#include <rankc/runtime/slot_exchange.hpp>

#include <cstdint>

namespace rankc::runtime::cuda {

/// Copies slots to the slabs of the ranks that hold their experts. The rest of a slab becomes zeros.
/// Shapes: slabs (ranks * slab, width), slots (slots, width), offsets (2, experts).
template <class T>
void put_into_slabs(const lane&, T* slabs, const T* slots, const std::int32_t* offsets,
                    const runtime::slot_exchange&);

/// Copies slots back from slabs. A slot that did not fit into its slab becomes zeros.
template <class T>
void take_from_slabs(const lane&, T* slots, const T* slabs, const std::int32_t* offsets,
                     const runtime::slot_exchange&);

/// Packs and sends in one kernel, for ranks whose GPUs map each other's memory. It writes only the filled
/// rows of this rank's slabs in the ranks' `received`. The rest of a slab is unchanged.
template <class T>
void send_slots(const lane&, const peer_group&, T* received, const T* slots, const std::int32_t* offsets,
                const runtime::slot_exchange&);
/// Fetches the slots back. A slot that did not fit into its slab becomes zeros.
template <class T>
void fetch_slots(const lane&, const peer_group&, T* slots, const T* received, const std::int32_t* offsets,
                 const runtime::slot_exchange&);

/// Writes the offsets of each rank's experts, relative to the start of that rank's slab.
/// Shapes: blocks (ranks, 2, experts of a rank).
void put_offsets(const lane&, std::int32_t* blocks, const std::int32_t* offsets,
                 const runtime::slot_exchange&);
/// Writes the segments of all received slabs from the blocks that the ranks sent. A segment is the first row,
/// and the row after the last, that one rank sent for one expert. Rows count from the start of the first
/// slab.
/// Shapes: blocks (ranks, 2, experts of a rank), segments (2, experts).
void take_offsets(const lane&, std::int32_t* segments, const std::int32_t* blocks,
                  const runtime::slot_exchange&);

}  // namespace rankc::runtime::cuda
