// SPDX-License-Identifier: Apache-2.0
// The sequences of a step, given to data-parallel ranks so that attention within their documents costs all
// ranks alike. Ranks wait for each other in each microbatch, so the sequences of a microbatch have similar
// costs.
#pragma once
#include <rankc/trainer/data.hpp>

#include <cstdint>
#include <vector>

namespace rankc::runtime {

/// The cost of attention in a sequence: the sum of the squared lengths of its documents.
/// Shapes: starts (seq): of each token the position at which its document begins.
std::uint64_t document_cost(const std::int32_t* starts, int seq);

/// The sequence at each place of a batch, by their costs.
/// Shapes: costs and result (microbatches, dp, rows).
std::vector<std::size_t> balanced_order(const std::vector<std::uint64_t>& costs, int microbatches, int dp,
                                        int rows);

/// Reorders a batch so; leaves it as it is without documents or with one data-parallel rank.
void balance_documents(const description&, batch&);

}  // namespace rankc::runtime
