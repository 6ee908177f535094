// SPDX-License-Identifier: Apache-2.0
// The facts of a user's rows. They follow from the op_row: its ports, its typing rule and its dual.
#pragma once
#include <rankc/codegen/specification.hpp>
#include <rankc/stages/plan_data.hpp>

#include <vector>

namespace rankc::codegen {

/// The facts of all rows that are not rankc's own: the rows of forward ops, and the rows that their duals
/// apply. If no facts follow from an op_row, its entry has the reason instead.
std::vector<specification::row_facts> declared_facts(const std::vector<trace>& on_one_device);

}  // namespace rankc::codegen
