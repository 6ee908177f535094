// SPDX-License-Identifier: Apache-2.0
// The types in which a step keeps what outlasts it.
#pragma once
#include <rankc/codegen/program.hpp>
#include <rankc/codegen/specification.hpp>

#include "refusal.hpp"

namespace rankc::codegen::algebra {

/// The types of values that are summed over a step, or from step to step.
inline bool is_wide(element_type t) { return t == element_type::f32 || t == element_type::f64; }

/// Ids, targets and starts are whole numbers. Weights and moments are in f32 or f64; in bf16 where the recipe
/// keeps them so, and a working copy may be.
/// Errors: refusal where the step begins with another type.
void check_type(const access&, const codegen::holding&, const specification::update&);
/// The optimizer leaves a weight and its moments in the type in which it is given them, and a working copy in
/// a type of floating-point numbers.
/// Errors: refusal.
void check_updated_type(const view&, element_type given, element_type made);

}  // namespace rankc::codegen::algebra
