// SPDX-License-Identifier: Apache-2.0
// The all-to-all of slots: members that shard experts send each other the slots of their experts. A member
// receives a slab from each member, ordered by expert. The rest of a slab, after its slots, belongs to no
// expert.
#pragma once
#include "../numbers/matrix.hpp"

namespace field {

/// The tensors of an exchange: each member's input, and the offsets of its tokens' slots: where each expert's
/// slots begin, and where they end.
struct slot_exchange {
  std::vector<matrix> given, offsets;
  std::int64_t slab;  // rows per member
};

/// Make a member's result. Shapes: slots (slots, width), offsets (2, experts), received (members * slab,
/// width), shared (2, experts).
/// Errors: malformed if sizes do not fit, or if a slab is too small for the slots.
void send_to_experts(const slot_exchange&, std::size_t member, matrix& received);
void send_from_experts(const slot_exchange&, std::size_t member, matrix& slots);
/// Make the offsets of the slots that the member receives.
void send_offsets(const slot_exchange&, std::size_t member, matrix& shared);
/// Make all members' received offsets, for their slabs one after the other. Shapes: gathered (2, members *
/// segments).
void gather_offsets(const slot_exchange&, std::size_t member, matrix& gathered);

}  // namespace field
