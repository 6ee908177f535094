// SPDX-License-Identifier: Apache-2.0
// What ranks give each other.
#pragma once
#include "compute.hpp"
#include "operand.hpp"

namespace field {

/// Elements on their way, each with its type, and whether the tensors are sums over tokens.
struct payload {
  std::vector<element> of;
  std::vector<element_type> types;
  token_sum sum = token_sum::none;
  std::size_t bytes() const;
};

/// What communication reads, or writes, access by access: the operands of its views, or all of each access.
std::vector<operand> communicated(const rankc::codegen::op&, bool written);
payload take(const rank_state&, const std::vector<operand>& from);
/// Errors: malformed where they are not of the same elements.
void put(rank_state&, const std::vector<operand>& to, const payload&);
/// What a member of a collective gets of what all members give of one tensor.
payload result_of(rankc::codegen::collective_kind, const std::vector<payload>& given, std::size_t member);
/// The same of an all_to_all of rows of `from` columns into rows of `to` columns, in sequences of so many
/// tokens.
payload exchanged(const std::vector<payload>& given, std::size_t member, std::size_t from, std::size_t to,
                  std::size_t seq);

}  // namespace field
