// SPDX-License-Identifier: Apache-2.0
// Constants that the routers of both targets share.
#pragma once

namespace rankc::runtime {

/// Added to the sum that normalises a row's weights, so that a row of zero scores stays finite.
/// Source: Megatron-LM and torchtitan, for scores by the sigmoid.
inline constexpr double smallest_row_sum = 1e-20;

/// The rows of a layer's router statistics, each with one number per expert: how often each expert was
/// chosen, the sums of its scores, and a row that holds the sum of squares of log(sum(exp(logits))) and the
/// number of top-k choices that were dropped.
inline constexpr int kinds_of_statistics = 3;

/// The most CUDA blocks that each sum the statistics of some tokens. Their sums are then added in order.
inline constexpr int blocks_of_statistics = 512;

}  // namespace rankc::runtime
