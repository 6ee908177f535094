// SPDX-License-Identifier: Apache-2.0
// What collectives make of what their members hold. Where a communicator has more members than the program,
// those that are there are the first two, and each further one holds what the shift from the first to the
// second says.
#pragma once
#include <functional>
#include <vector>

#include "contents.hpp"
#include "model.hpp"

namespace rankc::codegen::algebra {

/// What each member gets. `given` is of each member that is there, of `members` in all.
/// Errors: refusal where their sum, maximum or concatenation is none.
std::vector<content> combine(collective_kind, const std::vector<const content*>& given, int members);

/// Boxes or sets that are equal, or the first of `members` that are each shifted by as much from the one
/// before. Errors: refusal where they are neither.
runs union_of(char letter, const runs& first, const runs& second, int members);

/// A refusal of members that have parts of more than one value.
refusal different_values();
/// Errors: refusal where only some of the elements that a member sends have been written.
void check_written(std::int64_t known, std::int64_t elements);
/// Errors: refusal where the program has only some of the members of a collective.
void check_all_known(std::int64_t known, std::int64_t members);

/// Whether all of a buffer is zeros, of no box.
bool is_zeros(const content&);
/// The piece that lies in these elements.
/// Errors: refusal where there is none.
const piece& same_piece(const content&, const place&);

/// What each member of an all_to_all reads and writes, in sequences of so many tokens.
struct exchanged {
  tensor_shape from, to;
  std::int64_t seq;
};
/// What each gets: of its own heads all tokens, in the order of their positions, or of its own tokens all
/// heads. A member's tokens are, of each sequence in as many pairs of chunks as there are members, one from
/// the front and its counterpart.
/// Errors: refusal where they do not divide so.
std::vector<content> exchange(const std::vector<const content*>& given, const exchanged&);

/// How members exchange slots: each sends `rows` rows to each. A step has `tokens` tokens.
/// `order_of` returns the order of the slots that a term describes, and zero for any other term. `limit_of`
/// returns how many slots of an order experts take.
struct slabs {
  std::int64_t members, rows, tokens;
  std::function<term(const term&)> order_of;
  std::function<taken_of_group(const term&)> limit_of;
};
/// What each gets of its own experts' slots, of all members' tokens; of its own tokens' slots, of all
/// experts; and of offsets.
/// Errors: refusal where slots and offsets are not of one choice and the same tokens, or slabs have no room
/// for all.
std::vector<content> send_to_experts(const std::vector<const content*>& given,
                                     const std::vector<const content*>& offsets, const slabs&);
std::vector<content> send_from_experts(const std::vector<const content*>& given,
                                       const std::vector<const content*>& offsets, const slabs&);
std::vector<content> send_offsets(const std::vector<const content*>& given, const slabs&);
/// What each gets of offsets of what all members have received, whose rows lie one member's behind another's.
/// Errors: refusal where they are of different choices or experts.
std::vector<content> gather_offsets(const std::vector<const content*>& given, const slabs&);

/// Of places and offsets of all experts' slots (ports 2 and 3) those of some experts', of whom port 1 says
/// which is the first and how many there are. Errors: refusal where the two are not of one choice and the
/// same tokens.
void own_slots(std::vector<operand>& ports, const model&, workspace&);

/// Offsets are counted over some tokens, and the slots that they are given with are of others.
[[noreturn]] void refuse_counted(const runs& counted, const runs& slots);

/// The order of the slots that `members` members have received, one member after another, with `rows` rows
/// of each; and the order in which one member received its own.
term order_of_gathered(term order, std::int64_t members, std::int64_t rows);
term order_of_member(term order, std::int64_t members, std::int64_t rows);

/// Join a piece to one that it continues, with further rows or, of one dim, with further elements.
/// False where there is none.
bool continue_piece(content& all, const piece& more);
/// Whether two boxes are of the same terms, in the same parts of their sums.
bool holds_same_sum(const holding&, const holding&);

/// What members hold, one after the other.
/// Errors: refusal where these are no parts of one value.
content gather(const std::vector<const content*>& given);
/// The same of so many members in line, of whom the first two are given. What there is of a parameter may end
/// before they do: the rest is zeros.
content gather_line(const content& first, const content& second, int members);
/// A member's part: of each piece what lies in its elements of the buffer.
/// Errors: refusal where a row lies across an end of them.
content chunk(const content& all, int index, int members);

/// Of what so many members hold of a parameter's rows together, one shifted from the next, that which there
/// is of the parameter. Rows that do not divide are made up to a multiple: fewer than there are members lie
/// past the end. Errors: refusal where more do.
runs without_padding(const runs&, std::int64_t size, int members);

}  // namespace rankc::codegen::algebra
