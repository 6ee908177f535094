// SPDX-License-Identifier: Apache-2.0
// Assignment of a step's sequences to data-parallel ranks so that attention within documents costs each rank
// about the same. Ranks wait for each other in every microbatch, so each microbatch gets sequences of similar
// cost.
#pragma once
#include <rankc/trainer/data.hpp>

#include <cstdint>
#include <vector>

namespace rankc::runtime {

/// The attention cost of a sequence: the sum of the squared lengths of its documents.
/// Shapes: starts (seq): the position at which the document of each token begins.
std::uint64_t document_cost(const std::int32_t* starts, int seq);

/// The index of the sequence at each place of a batch, balanced by cost.
/// Shapes: costs and result (microbatches, dp, rows).
std::vector<std::size_t> balanced_order(const std::vector<std::uint64_t>& costs, int microbatches, int dp,
                                        int rows);

/// Reorders a batch by balanced_order. A batch without documents, or with one data-parallel rank, stays
/// unchanged.
void balance_documents(const description&, batch&);

}  // namespace rankc::runtime
