// SPDX-License-Identifier: Apache-2.0
// The all-to-all of ranks that have experts of their own: each gives each a slab of rows, the slots of its
// tokens that are of the other's experts.
#pragma once
#include <rankc/runtime/host_device.hpp>

namespace rankc::runtime {

/// `ranks` share out `experts`; a slab has room for `slab` rows. A rank has `slots` rows of its own tokens,
/// in the order of experts, of `width` elements.
struct slot_exchange {
  int ranks, slab, experts;
  int slots = 0, width = 0;

  RANKC_HOST_DEVICE constexpr int experts_of_rank() const { return experts / ranks; }
  /// The first of the slots that go to a rank, and the one after the last of those that have room. Offsets
  /// are of each expert the first of its slots and, behind these, the one after its last.
  RANKC_HOST_DEVICE constexpr int first(const int* offsets, int rank) const {
    return offsets[rank * experts_of_rank()];
  }
  RANKC_HOST_DEVICE constexpr int end(const int* offsets, int rank) const {
    const int last = offsets[experts + (rank + 1) * experts_of_rank() - 1],
              room = first(offsets, rank) + slab;
    return last < room ? last : room;
  }
  /// An offset of an expert as its place in the slab of the rank that has it.
  RANKC_HOST_DEVICE constexpr int in_slab(const int* offsets, int which, int expert) const {
    const int place = offsets[which * experts + expert] - first(offsets, expert / experts_of_rank());
    return place < slab ? place : slab;
  }
};

}  // namespace rankc::runtime
