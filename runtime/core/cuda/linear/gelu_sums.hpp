// SPDX-License-Identifier: Apache-2.0
// GELU's gradient with that of the bias before it, for products that leave both to a pass over memory.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

namespace rankc::runtime::cuda {

/// dx = dy gelu'(before), and db = or += its sums over the tokens, as they are rounded to T.
/// Shapes: dx, dy, before (tokens, width); db f32 (width). dx may be dy.
template <class T>
void gelu_grad_bias(const lane&, at dx, at db, at dy, at before, int tokens, int width, bool accumulate);

}  // namespace rankc::runtime::cuda
