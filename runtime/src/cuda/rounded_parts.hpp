// SPDX-License-Identifier: Apache-2.0
// Parts of sums on their way between GPUs: f32 rounded to bf16 to be sent, and widened where it has arrived.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

namespace rankc::cuda {

/// to[p * count + i] = from[p * stride + i] of `parts` parts, rounded to nearest.
void round_parts(const lane&, bf16* to, const float* from, std::size_t parts, std::size_t stride, std::size_t count);

/// to[i] = from[i].
void widen_part(const lane&, float* to, const bf16* from, std::size_t count);

}  // namespace rankc::cuda
