// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <rankc/stages/plan_data.hpp>

#include <vector>

namespace equivalence_tests {

/// small_llama: dp 2 and tp 2. sharded_gpt: 4 shards, into which not all parameters divide, and 2 replicas.
/// large_world: a GPT whose representative ranks stand for all.
rankc::plan_data small_llama();
rankc::plan_data sharded_gpt();
rankc::plan_data large_world(int dp, int tp, int pp, int shards = 1);
/// Plans with sharded weights, gathered for each layer or once, with replicas, tp, pp and padding; also a
/// world in which representative ranks stand for all.
std::vector<rankc::plan_data> sharded();

}  // namespace equivalence_tests
