// SPDX-License-Identifier: Apache-2.0
// RMSNorm in bf16 for rows that fit into a part of a warp, such as attention heads: 64, 128 or 256 elements.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

namespace rankc::runtime::cuda {

/// True if rows of this width are supported. Packs of 16 bytes must be loadable.
constexpr bool is_narrow(int width) { return width == 64 || width == 128 || width == 256; }

void narrow_rms_norm(const lane&, bf16* y, float* stats, const bf16* x, const bf16* gain, int tokens,
                     int width, float eps);

/// Returns the number of partial sums of dgain that it leaves in the lane's workspace.
int narrow_rms_norm_grad(const lane&, bf16* dx, const bf16* dy, const bf16* x, const float* stats,
                         const bf16* gain, int tokens, int width);

}  // namespace rankc::runtime::cuda
