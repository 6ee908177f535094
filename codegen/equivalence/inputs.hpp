// SPDX-License-Identifier: Apache-2.0
// Checks the order in which a program begins with its inputs. It does not relate the rows of one input to
// those of another, nor a rank to its place in the mesh.
#pragma once
#include <rankc/codegen/program.hpp>

namespace rankc::codegen::algebra {

/// Checks the order of inputs. On each rank, the microbatches of an input lie one behind the other, in the
/// order of their rows. A rank has the rows of an earlier rank that runs the same program, or later rows. The
/// hash of calls has the first byte of each input only, and the loader follows this order.
/// Errors: refusal.
void check_inputs(const program&);

}  // namespace rankc::codegen::algebra
