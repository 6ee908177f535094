// SPDX-License-Identifier: Apache-2.0
// Plans whose ranks shard sequences and exchange heads, alone and with every other technique. A job is a
// model, on one rank and split.
#pragma once
#include "../families/split_plan.hpp"

namespace sequences {

std::vector<split_plan> plans();

/// A ring of `groups` ranks, or of groups of `of_group` ranks each. Each rank has 8 tokens of each of two
/// sequences.
rankc::plan_data ring_of(int groups, int of_group = 1);

}  // namespace sequences
