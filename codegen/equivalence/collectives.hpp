// SPDX-License-Identifier: Apache-2.0
// The results of collectives, from the contents of their members. If a communicator has more members than the
// program, its first two members are present. Each further member is shifted from the one before it as the
// second is from the first.
#pragma once
#include <functional>
#include <vector>

#include "contents.hpp"
#include "model.hpp"

namespace rankc::codegen::algebra {

/// The result of each member. `given`: the contents of the members that the program lists. `members`: the
/// size of the communicator, which may have more.
/// Errors: refusal where the contents have no sum, maximum or concatenation.
std::vector<content> combine(collective_kind, const std::vector<const content*>& given, int members);

/// The union of `members` sets. Either all are equal, or each is the one before it shifted by a fixed
/// distance.
/// Errors: refusal where they are neither.
runs union_of(char letter, const runs& first, const runs& second, int members);

/// The refusal of members that have parts of different values.
refusal different_values();
/// Errors: refusal where only some of the elements that a member sends are written.
void check_written(std::int64_t known, std::int64_t elements);
/// Errors: refusal where the program lacks some members of a collective.
void check_all_known(std::int64_t known, std::int64_t members);

/// Whether a whole buffer is zeros without a box.
bool is_zeros(const content&);
/// The piece at these elements.
/// Errors: refusal where there is none.
const piece& same_piece(const content&, const place&);

/// The shapes that each member of an all_to_all reads and writes. `seq`: tokens of a sequence.
struct exchanged {
  tensor_shape from, to;
  std::int64_t seq;
};
/// The result of each member: all tokens of its heads, in the order of their positions, or all heads of its
/// tokens. Each sequence is cut into two chunks per member. A member holds one chunk from the front of a
/// sequence and its mirror image from the back.
/// Errors: refusal where a sequence does not divide into these chunks.
std::vector<content> exchange(const std::vector<const content*>& given, const exchanged&);

/// How members exchange expert slots: each sends `rows` rows to each member. A step has `tokens` tokens.
/// `order_of` returns the slot order that a term describes, and zero for any other term. `limit_of` returns
/// the number of slots of an order that experts take.
struct slabs {
  std::int64_t members, rows, tokens;
  std::function<term(const term&)> order_of;
  std::function<taken_of_group(const term&)> limit_of;
};
/// The result of each member. `send_to_experts`: the slots of its experts, of all members' tokens.
/// `send_from_experts`: the slots of its tokens, of all experts. `send_offsets`: the offsets of the slots
/// that it receives.
/// Errors: refusal where slots and offsets differ in their choice or their tokens, or slabs are too small.
std::vector<content> send_to_experts(const std::vector<const content*>& given,
                                     const std::vector<const content*>& offsets, const slabs&);
std::vector<content> send_from_experts(const std::vector<const content*>& given,
                                       const std::vector<const content*>& offsets, const slabs&);
std::vector<content> send_offsets(const std::vector<const content*>& given, const slabs&);
/// The offsets of the slots that all members received, one member's rows after another's.
/// Errors: refusal where members have offsets of different choices or experts.
std::vector<content> gather_offsets(const std::vector<const content*>& given, const slabs&);

/// Restricts the places and offsets of all experts' slots (ports 2 and 3) to a range of experts. Port 1 has
/// the first expert of the range and their number.
/// Errors: refusal where places and offsets differ in their choice or their tokens.
void own_slots(std::vector<operand>& ports, const model&, workspace&);

/// The refusal of offsets that are counted over other tokens than those of the slots.
[[noreturn]] void refuse_counted(const runs& counted, const runs& slots);

/// The order of the slots that `members` members received, `rows` rows of each, one member after another; and
/// its inverse, the order in which one member received its slots.
term order_of_gathered(term order, std::int64_t members, std::int64_t rows);
term order_of_member(term order, std::int64_t members, std::int64_t rows);

/// Joins a piece to the piece that it continues by further rows or, with one dim, by further elements.
/// Returns false if there is no such piece.
bool continue_piece(content& all, const piece& more);
/// Whether two boxes have the same terms, with the same parts of their sums.
bool holds_same_sum(const holding&, const holding&);

/// Concatenates the contents of all members.
/// Errors: refusal where they are not parts of one value.
content gather(const std::vector<const content*>& given);
/// Concatenates `members` members of which the first two are given. A parameter may end before the last
/// member does; the rest is zeros.
content gather_line(const content& first, const content& second, int members);
/// The shard of a member: the part of each piece in its range of the buffer.
/// Errors: refusal where the range begins or ends inside a row.
content chunk(const content& all, int index, int members);

/// Clips the union of the members' rows to the size of the parameter. Rows that do not divide are padded to a
/// multiple, so fewer rows than members lie past the end.
/// Errors: refusal where more do.
runs without_padding(const runs&, std::int64_t size, int members);

}  // namespace rankc::codegen::algebra
