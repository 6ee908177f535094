// SPDX-License-Identifier: Apache-2.0
// The contents of an arena while install tries the steps out.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

namespace rankc::runtime::cuda {

/// Fills the arena with small random numbers that are valid as f32 and as bf16. Moments are zero, because a
/// square is not negative. So tuning sees numbers like those of real steps: with zeros a GPU runs faster.
void fill_with_noise(const lane&);

}  // namespace rankc::runtime::cuda
