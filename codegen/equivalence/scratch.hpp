// SPDX-License-Identifier: Apache-2.0
// The scratch of ops: memory that no op reads before the op writes it, or after the op ends.
#pragma once
#include <rankc/codegen/program.hpp>

#include "facts.hpp"

namespace rankc::codegen::algebra {

/// Checks that an op has scratch exactly if its row needs it. The scratch of rankc's rows must have at least
/// the bytes that the kernel uses; the check does not know how many a user's kernel uses. The op's views must
/// have passed their checks.
/// Errors: refusal.
void check_scratch_bytes(const op&, const fact&, const kernel_set&);

}  // namespace rankc::codegen::algebra
