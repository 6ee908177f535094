// SPDX-License-Identifier: Apache-2.0
// The facts of a user's rows, as each op_row declares them by its ports, its typing rule and its dual.
#pragma once
#include <rankc/codegen/specification.hpp>
#include <rankc/stages/plan_data.hpp>

#include <vector>

namespace rankc::codegen {

/// The facts of all rows that are not rankc's own: those of forward ops, and those that their duals apply.
/// A row whose facts do not follow from its op_row has the reason instead.
std::vector<specification::row_facts> declared_facts(const std::vector<trace>& on_one_device);

}  // namespace rankc::codegen
