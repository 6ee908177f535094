// SPDX-License-Identifier: Apache-2.0
// What both targets' routers have in common.
#pragma once

namespace rankc::runtime {

/// What is added to the sum by which a row's weights are divided, so that scores of nothing but zeros stay finite.
/// Source: Megatron-LM and torchtitan, for scores by the sigmoid.
inline constexpr double smallest_row_sum = 1e-20;

}  // namespace rankc::runtime
