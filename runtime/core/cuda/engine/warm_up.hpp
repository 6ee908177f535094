// SPDX-License-Identifier: Apache-2.0
// What an arena holds while install tries the steps out.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

namespace rankc::runtime::cuda {

/// Fill the arena with small random numbers, which read as f32 and as bf16 alike; moments are zero, since a
/// square is not negative. Tuning then sees what it will see in steps: zeros make a GPU faster than it is.
void fill_with_noise(const lane&);

}  // namespace rankc::runtime::cuda
