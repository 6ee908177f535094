// SPDX-License-Identifier: Apache-2.0
// Checks the addresses of values. All other checks follow values by name only.
#pragma once
#include <rankc/codegen/program.hpp>

namespace rankc::codegen::algebra {

/// Checks that each rank writes a value once, and reads it from the first byte of that write on. Behind the
/// tensors that an optimizer's kernel rounds up to a multiple of elements, a rank may write nothing but
/// padding.
/// Errors: refusal.
void check_places(const program&);

}  // namespace rankc::codegen::algebra
