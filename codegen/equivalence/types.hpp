// SPDX-License-Identifier: Apache-2.0
// The element types that kernels exist for, and the types in which a step keeps its tensors.
#pragma once
#include <rankc/codegen/program.hpp>
#include <rankc/codegen/specification.hpp>

#include "facts.hpp"
#include "refusal.hpp"

namespace rankc::codegen::algebra {

/// The types of values that are summed over a step, or from step to step.
inline bool is_wide(element_type t) { return t == element_type::f32 || t == element_type::f64; }

/// Checks the type of a tensor that the step begins with. Ids, targets and starts are integers. An input that
/// the model declares is of integers, f32 or f64. Weights and moments are in f32 or f64, or in bf16 if the
/// recipe keeps them in bf16. A working copy may be in bf16.
/// Errors: refusal.
void check_type(const access&, const codegen::holding&, const specification::update&);
/// Checks that the optimizer writes a weight and its moments in the type in which it reads them, and a
/// working copy in a floating-point type.
/// Errors: refusal.
void check_updated_type(const view&, element_type given, element_type made);

/// Checks that the floating-point tensors of a kernel have the type in which it computes. Wide tensors of its
/// row are in f32, or in f64 where it computes in f64. Host kernels do not compute in bf16, and CUDA kernels
/// do not compute in f64.
/// Errors: refusal.
void check_number_types(const op&, const fact&, const kernel_set&);
/// Checks that a step does not have tensors in f32 and tensors in f64.
/// Errors: refusal.
void check_number_types(const program&);

}  // namespace rankc::codegen::algebra
