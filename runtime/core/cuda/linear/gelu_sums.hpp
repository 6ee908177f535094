// SPDX-License-Identifier: Apache-2.0
// The gradients of GELU and of the bias before it in one memory-bound kernel, for GEMMs that fuse neither.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

namespace rankc::runtime::cuda {

/// dx = dy gelu'(before), and db = or += the sums over tokens of dx rounded to T.
/// Shapes: dx, dy, before (tokens, width); db f32 (width). dx may be dy.
template <class T>
void gelu_grad_bias(const lane&, at dx, at db, at dy, at before, int tokens, int width, bool accumulate);

}  // namespace rankc::runtime::cuda
