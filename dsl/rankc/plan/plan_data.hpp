// SPDX-License-Identifier: Apache-2.0
// A plan as plain data: what the typed declaration hands to the generator. Templates end here.
#pragma once
#include <rankc/recipe/cluster.hpp>
#include <rankc/ops/balance.hpp>
#include <rankc/stages/kinds_of_stages.hpp>
#include <rankc/mesh/layout.hpp>
#include <rankc/recipe/training.hpp>
#include <rankc/rules/values/setting.hpp>
#include <rankc/schedule/timing.hpp>
#include <rankc/trace/trace.hpp>

#include <string>
#include <vector>

namespace rankc {

/// Of a model some of whose layers have experts: their width, whether a token's weights add up to 1, and
/// which layers are dense.
struct known_experts {
  int ffn = 0;  // 0: there are none
  bool normalized = true;
  int every = 1;           // layers have experts whose number from 1 on divides by it,
  std::vector<int> dense;  // but for these, from 0 on
  model_routers routers{};
  double capacity = 0;  // of each, as a multiple of an even share; 0: none
};

/// What is known of a model that has a name in the field.
struct known_model {
  std::string family;  // empty: none
  model_sizes sizes;
  double theta = 0;        // of rotary positions
  rope_scaling scaling{};  // of these
  double norm_eps = 0;
  known_experts experts{};
};

/// A layer as declared: traced once, used `count` times.
struct layer_kind {
  std::string name;
  trace ops;
  int count = 1;
  bool repeated = false;  // its parameters are named "layers.N."
};

struct plan_data {
  std::string name;
  report diagnostics;  // empty: the plan is valid, and the rest is complete
  parallel_dims dims;
  training recipe;
  rankc::cluster machines;
  std::string schedule;
  action_table actions;
  costs expected;  // of the actions
  int rows = 0;    // sequences per microbatch and data-parallel rank
  int vocab_used = 0;
  known_model model;
  std::vector<layer_kind> kinds;
  std::vector<trace> on_one_device;  // of each kind: with all degrees 1 and the whole batch of a step
  std::vector<int> blocks_of_stage;  // repeated layers on each stage
};

}  // namespace rankc
