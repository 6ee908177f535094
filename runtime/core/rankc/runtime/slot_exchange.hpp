// SPDX-License-Identifier: Apache-2.0
// The all-to-all of expert parallelism. Each rank sends each other rank a slab of rows: the slots of its
// tokens that belong to the other's experts.
#pragma once
#include <rankc/runtime/host_device.hpp>

namespace rankc::runtime {

/// `ranks` ranks share `experts` experts. A slab has room for `slab` rows. A rank has `slots` rows for its
/// own tokens, sorted by expert, with `width` elements each.
struct slot_exchange {
  int ranks, slab, experts;
  int slots = 0, width = 0;

  RANKC_HOST_DEVICE constexpr int experts_of_rank() const { return experts / ranks; }
  /// The first slot that goes to a rank, and the slot after the last one that fits into the slab. `offsets`
  /// contains the first slot of each expert, then the slot after its last.
  RANKC_HOST_DEVICE constexpr int first(const int* offsets, int rank) const {
    return offsets[rank * experts_of_rank()];
  }
  RANKC_HOST_DEVICE constexpr int end(const int* offsets, int rank) const {
    const int last = offsets[experts + (rank + 1) * experts_of_rank() - 1],
              room = first(offsets, rank) + slab;
    return last < room ? last : room;
  }
  /// An offset of an expert, relative to the slab of the rank that holds the expert.
  RANKC_HOST_DEVICE constexpr int in_slab(const int* offsets, int which, int expert) const {
    const int place = offsets[which * experts + expert] - first(offsets, expert / experts_of_rank());
    return place < slab ? place : slab;
  }
};

}  // namespace rankc::runtime
