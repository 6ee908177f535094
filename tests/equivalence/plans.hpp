// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <rankc/stages/plan_data.hpp>

#include <vector>

namespace equivalence_tests {

/// A Llama on dp 2 and tp 2; a GPT in 4 shards, into which not all parameters divide, and 2 replicas; a GPT on a
/// world of which some ranks stand for all.
rankc::plan_data small_llama();
rankc::plan_data sharded_gpt();
rankc::plan_data large_world(int dp, int tp, int pp, int shards = 1);
/// Weights in shards: gathered for each layer or once, with replicas, tp, pp, padding; and on a world of
/// which some stand for all.
std::vector<rankc::plan_data> sharded();

}  // namespace equivalence_tests
