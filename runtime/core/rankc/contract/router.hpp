// SPDX-License-Identifier: Apache-2.0
// What both targets' routers have in common.
#pragma once

namespace rankc::runtime {

/// What is added to the sum by which a row's weights are divided, so that scores of nothing but zeros stay
/// finite.
/// Source: Megatron-LM and torchtitan, for scores by the sigmoid.
inline constexpr double smallest_row_sum = 1e-20;

/// What routers keep of each layer: rows of as many numbers as there are experts, the number of choices of
/// each, the sums of their scores and, in a row of their own, the sum of squares of log(sum(exp(logits))) and
/// the number of picks that were dropped.
inline constexpr int kinds_of_statistics = 3;

/// Blocks of a GPU's threads that each sum up some of the tokens, before their sums are added up in order.
inline constexpr int blocks_of_statistics = 512;

}  // namespace rankc::runtime
