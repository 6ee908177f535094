// SPDX-License-Identifier: Apache-2.0
// Checks which rows of its inputs each rank of a program begins with.
#pragma once
#include <rankc/codegen/program.hpp>

#include "model.hpp"

namespace rankc::codegen::algebra {

/// Checks that the loader fills the inputs as the program says. A step has microbatches, and each of them a
/// part for each replica. The microbatches of an input lie one behind the other. They are as many for all
/// inputs, and equally far apart in rows. Of the ranks that run a program, the first ones are replica 0, the
/// next ones replica 1. A rank has rows of its replica alone.
/// Errors: refusal.
void check_inputs(const program&, const model&);

}  // namespace rankc::codegen::algebra
