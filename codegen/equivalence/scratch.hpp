// SPDX-License-Identifier: Apache-2.0
// The scratch of ops: memory that holds nothing before and after them.
#pragma once
#include <rankc/codegen/program.hpp>

#include "facts.hpp"

namespace rankc::codegen::algebra {

/// An op has scratch if its row needs it, and otherwise none. The scratch of rankc's rows has at least the
/// bytes that the kernel uses; how many a user's kernel uses is not known. The op's views have been found
/// right.
/// Errors: refusal.
void check_scratch_bytes(const op&, const fact&, const kernel_set&);

}  // namespace rankc::codegen::algebra
