// SPDX-License-Identifier: Apache-2.0
// The scratch of ops: memory that holds nothing before and after them.
#pragma once
#include <rankc/codegen/program.hpp>

namespace rankc::codegen::algebra {

/// An op has scratch where its row needs it, of at least as many bytes as the kernel uses, and nowhere else.
/// The op's views have been found right.
/// Errors: refusal.
void check_scratch_bytes(const op&, const kernel_set&);

}  // namespace rankc::codegen::algebra
