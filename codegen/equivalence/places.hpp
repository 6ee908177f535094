// SPDX-License-Identifier: Apache-2.0
// Where values lie: the check follows them by their names alone.
#pragma once
#include <rankc/codegen/program.hpp>

namespace rankc::codegen::algebra {

/// Each rank writes a value once, and reads it from the first byte of that write on. It writes nothing but
/// padding behind the tensors that the kernel of an optimizer takes up to a multiple of elements.
/// Errors: refusal.
void check_places(const program&);

}  // namespace rankc::codegen::algebra
