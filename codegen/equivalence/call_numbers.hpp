// SPDX-License-Identifier: Apache-2.0
// The sizes and the number that the call of a kernel names beside its operands.
#pragma once
#include <rankc/codegen/program.hpp>

#include <string>
#include <vector>

#include "facts.hpp"

namespace rankc::codegen::algebra {

/// The words of a row's call, in order: a letter of one of its axes or units, "rows", "seq" or "number" for an
/// attribute of the op, "cp" for the number of ranks that share its sequences, "ring" for that of its ring.
std::vector<std::string> numbers_of_call(std::string_view row);

/// Check that a call names the sizes of its op's tensors, and the op's attributes.
/// Errors: refusal with the first that is another.
void check_call_numbers(const op&, const fact&);

}  // namespace rankc::codegen::algebra
