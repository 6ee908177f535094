// SPDX-License-Identifier: Apache-2.0
// Training steps as rank programs, built without the lowering: pipeline stages with double-buffered boundary
// slots, tensor-parallel sums, gradients accumulated over microbatches, and a data-parallel reduction that
// overlaps them.
#pragma once
#include <rankc/codegen/program.hpp>

namespace rankc::codegen::testing {

struct pipeline_shape {
  int pp = 2, tp = 1, dp = 1;
  int microbatches = 4, layers = 2;  // `layers`: per stage
  bool one_f_one_b = true;           // false: GPipe
};

/// A correct program whose events are all necessary. Rank (p * dp + d) * tp + t holds stage p.
program pipeline_program(const pipeline_shape&);

}  // namespace rankc::codegen::testing
