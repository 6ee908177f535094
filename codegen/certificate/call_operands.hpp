// SPDX-License-Identifier: Apache-2.0
// Compares the operands of calls with their ops, before the calls are hashed.
#pragma once
#include <rankc/codegen/program.hpp>

namespace rankc::codegen {

/// True if the call of an op takes whole regions: weights, gradients and moments.
bool is_over_regions(const op&);

/// Checks that the operands of a call begin where the reads, writes and views of its op begin. `rank`: number
/// in the world.
/// Errors: runtime::failure (1) naming the rank and the op.
void check_operands(const op&, int rank);

}  // namespace rankc::codegen
