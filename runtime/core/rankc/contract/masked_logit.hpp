// SPDX-License-Identifier: Apache-2.0
// The logit of a column that takes no part in a softmax.
#pragma once

namespace rankc {

/// It is finite, and exact in bf16, f32 and f64. A softmax with any other logit gives it the weight 0.
inline constexpr double masked_logit = -0x1p100;

}  // namespace rankc
