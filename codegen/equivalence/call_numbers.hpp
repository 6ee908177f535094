// SPDX-License-Identifier: Apache-2.0
// The sizes and the number that a kernel's call has among its arguments.
#pragma once
#include <rankc/codegen/program.hpp>

#include <string>
#include <vector>

#include "facts.hpp"

namespace rankc::codegen::algebra {

/// The words of a row's call, in order. A letter stands for the size of an axis or of a unit. "rows", "seq"
/// and "number" are attributes of the op. "cp" is the number of ranks that shard its sequences, "ring" the
/// number of ranks in its ring.
std::vector<std::string> numbers_of_call(std::string_view row);

/// The sizes and the number in the call of an op of this row, in order.
/// Shapes: the op has a view for each port, with sizes and units of 1 or more.
std::vector<double> call_numbers(const op&, const fact&);

/// Checks that a call passes the sizes of its op's tensors and the op's attributes.
/// Errors: refusal with the first value that differs.
void check_call_numbers(const op&, const fact&);

}  // namespace rankc::codegen::algebra
