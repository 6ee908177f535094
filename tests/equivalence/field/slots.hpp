// SPDX-License-Identifier: Apache-2.0
// The exchanges of slots: members that share out experts give each other the slots of these. What a member
// gets lies in slabs, one for each of the members whose tokens the slots are of, expert after expert; behind
// a slab's slots lies what is nobody's.
#pragma once
#include "matrix.hpp"

namespace field {

/// What each member gives, and the offsets of the slots of its own tokens: of each expert where they begin,
/// and where they end.
struct slot_exchange {
  std::vector<matrix> given, offsets;
  std::int64_t slab;  // rows
};

/// What a member gets. Shapes: slots (slots, width), offsets (2, experts), received (members * slab, width),
/// shared (2, experts).
/// Errors: malformed, where slots of a member have no room in a slab too.
void send_to_experts(const slot_exchange&, std::size_t member, matrix& received);
void send_from_experts(const slot_exchange&, std::size_t member, matrix& slots);
/// Of what it receives.
void send_offsets(const slot_exchange&, std::size_t member, matrix& shared);
/// What all members have of what they received, as of slabs in line. Shapes: gathered (2, members *
/// segments).
void gather_offsets(const slot_exchange&, std::size_t member, matrix& gathered);

}  // namespace field
