// SPDX-License-Identifier: Apache-2.0
// The data that ranks exchange.
#pragma once
#include "compute.hpp"
#include "operand.hpp"

namespace field {

/// Elements in transit with their types, and whether they are sums over tokens.
struct payload {
  std::vector<element> of;
  std::vector<element_type> types;
  token_sum sum = token_sum::none;
  std::size_t bytes() const;
};

/// The operands that a communication reads or writes, one per access: its view, or the whole access.
std::vector<operand> communicated(const rankc::codegen::op&, bool written);
payload take(const rank_state&, const std::vector<operand>& from);
/// Store a payload. Errors: malformed if the types or sizes differ.
void put(rank_state&, const std::vector<operand>& to, const payload&);
/// A member's result of a collective on one tensor, from all members' inputs.
payload result_of(rankc::codegen::collective_kind, const std::vector<payload>& given, std::size_t member);
/// A member's result of an all_to_all from rows of `from` columns to rows of `to` columns, in sequences of
/// `seq` tokens.
payload exchanged(const std::vector<payload>& given, std::size_t member, std::size_t from, std::size_t to,
                  std::size_t seq);

}  // namespace field
