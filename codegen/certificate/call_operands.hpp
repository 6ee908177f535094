// SPDX-License-Identifier: Apache-2.0
// The operands of calls, which are compared with their ops before the calls are hashed.
#pragma once
#include <rankc/codegen/program.hpp>

namespace rankc::codegen {

/// Whether the call of an op takes whole regions: of the weights, of the gradients, of the moments.
bool is_over_regions(const op&);

/// Check that the operands of a call begin where the reads, writes and views of its op begin. `rank`: in the
/// world.
/// Errors: runtime::failure (1) naming the rank and the op.
void check_operands(const op&, int rank);

}  // namespace rankc::codegen
