// SPDX-License-Identifier: Apache-2.0
// The sizes and the number among the arguments of a kernel's call.
#pragma once
#include <rankc/codegen/program.hpp>

#include <string>
#include <vector>

#include "facts.hpp"

namespace rankc::codegen::algebra {

/// The words of a row's call, in order. A letter is the size of an axis or a unit. "rows", "seq" and "number"
/// are attributes of the op. "cp" is the number of ranks that share its sequences, "ring" that of its ring.
std::vector<std::string> numbers_of_call(std::string_view row);

/// The sizes and the number that the call of an op of the row names, in order.
/// Shapes: the op has a view for each port, with sizes and units of 1 or more.
std::vector<double> call_numbers(const op&, const fact&);

/// Checks that a call names the sizes of its op's tensors, and the op's attributes.
/// Errors: refusal with the first that differs.
void check_call_numbers(const op&, const fact&);

}  // namespace rankc::codegen::algebra
