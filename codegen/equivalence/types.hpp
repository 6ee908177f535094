// SPDX-License-Identifier: Apache-2.0
// The types of elements: those that kernels exist for, and those in which a step keeps its tensors.
#pragma once
#include <rankc/codegen/program.hpp>
#include <rankc/codegen/specification.hpp>

#include "facts.hpp"
#include "refusal.hpp"

namespace rankc::codegen::algebra {

/// The types of values that are summed over a step, or from step to step.
inline bool is_wide(element_type t) { return t == element_type::f32 || t == element_type::f64; }

/// Ids, targets and starts are whole numbers. An input that the model declares has whole numbers, f32 or
/// f64. Weights and moments are in f32 or f64, or in bf16 if the recipe keeps them in bf16. A working copy
/// may be in bf16.
/// Errors: refusal where the step begins with another type.
void check_type(const access&, const codegen::holding&, const specification::update&);
/// The optimizer leaves a weight and its moments in the type in which it is given them, and a working copy in
/// a type of floating-point numbers.
/// Errors: refusal.
void check_updated_type(const view&, element_type given, element_type made);

/// Floating-point tensors of a kernel are in the type in which it computes. Tensors that its row has as wide
/// are in f32, or in f64 where it computes in f64. Kernels of the host do not compute in bf16, and those of
/// CUDA not in f64.
/// Errors: refusal.
void check_number_types(const op&, const fact&, const kernel_set&);
/// A step has tensors in f32 or in f64, and not in both.
/// Errors: refusal.
void check_number_types(const program&);

}  // namespace rankc::codegen::algebra
