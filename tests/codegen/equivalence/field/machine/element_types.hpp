// SPDX-License-Identifier: Apache-2.0
// The element types that follow from the model and from the row alone: integers for the model's ids, choices
// and positions; fp8 for the results of rounding rows; the recipe's types for persistent state.
#pragma once
#include "memory.hpp"

#include <rankc/codegen/specification.hpp>

#include <string_view>
#include <vector>

namespace field {

/// The rounding of a row's GEMM operands.
rankc::codegen::specification::rounding rounding_of(std::string_view row);
/// Whether a kernel takes elements of a type at a port.
bool takes(std::string_view row, std::string_view port, bool is_result, element_type);
/// A number that an op reads: its type, and whether it is a sum over tokens.
struct read_number {
  element_type type;
  token_sum sum;
};
token_sum sum_in_result(std::string_view row, std::string_view port, element_type,
                        const std::vector<read_number>&);
/// Whether a row may read a sum whose parts were sent in bf16: it copies, adds or multiplies gradients.
bool may_read_rounded_sums(std::string_view row);
/// Whether the update of a parameter may read a gradient whose parts were sent in bf16. A router's bias is
/// updated by numbers of choices, and bf16 does not have every whole number above 256.
bool may_be_sent_in_bf16(const rankc::load_balance&, const rankc::codegen::specification::update&);
/// Whether a step may begin and end with a holding in this type.
bool keeps(rankc::codegen::holding_kind, element_type, const rankc::codegen::specification::update&);

}  // namespace field
