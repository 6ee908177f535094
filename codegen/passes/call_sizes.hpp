// SPDX-License-Identifier: Apache-2.0
// The sizes that the call of a kernel names beside its operands, by their symbols in the row.
#pragma once
#include <rankc/codegen/lowered.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace rankc::codegen {

std::vector<std::string_view> split(std::string_view text, char at);
void add_once(std::vector<std::string>& list, const std::string& name);

/// Whether a symbol is the place where a rank's shard begins.
bool is_first(const op_row&, std::string_view symbol);
/// "heads_dim": whole units of a number of elements are one number in a type.
std::string dim_symbol(const port_dim&);
/// Whether an operand's type tells a size.
bool is_in_a_type(const op_row&, const std::string& symbol);
/// The sizes that the kernel takes besides operands, and the units of dims.
std::vector<std::string> needed_sizes(const op_row&, target);
/// The symbols of the sizes and of the number that a call names, in the order of its members.
std::vector<std::string> numbers_of(const op_row&, target);

}  // namespace rankc::codegen
