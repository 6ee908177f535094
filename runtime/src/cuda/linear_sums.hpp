// SPDX-License-Identifier: Apache-2.0
// A bias gradient that an epilogue left in the workspace, for epilogues only overwrite.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

namespace rankc::cuda {

/// db += sums. Shapes: db, sums (width).
void add_sums(rank&, float* db, const float* sums, int width);

}  // namespace rankc::cuda
