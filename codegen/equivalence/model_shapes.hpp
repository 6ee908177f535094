// SPDX-License-Identifier: Apache-2.0
// Checks that a model is well formed: each op fits the shapes of its values, and has no attribute that its
// row does not take.
#pragma once
#include <rankc/codegen/specification.hpp>

#include "fact_table.hpp"
#include "refusal.hpp"

namespace rankc::codegen::algebra {

/// Errors: refusal; unknown_row.
void check_shapes(const specification&, const fact_table&);

}  // namespace rankc::codegen::algebra
