// SPDX-License-Identifier: Apache-2.0
// The sizes in a kernel's call besides its operands, by their symbols in the row.
#pragma once
#include <rankc/codegen/lowered.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace rankc::codegen {

std::vector<std::string_view> split(std::string_view text, char at);
void add_once(std::vector<std::string>& list, const std::string& name);

/// True if a symbol is the offset of a rank's shard.
bool is_first(const op_row&, std::string_view symbol);
/// The symbol of a dim in a type. A dim in units has one symbol for count and unit: "heads_dim".
std::string dim_symbol(const port_dim&);
/// True if an operand's type contains a size.
bool is_in_a_type(const op_row&, const std::string& symbol);
/// The sizes that the kernel takes besides operands, and the counts and units of dims.
std::vector<std::string> needed_sizes(const op_row&, target);
/// The symbols of the sizes and of the number in a call, in the order of its members.
std::vector<std::string> numbers_of(const op_row&, target);

}  // namespace rankc::codegen
