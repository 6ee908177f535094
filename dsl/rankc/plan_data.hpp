// SPDX-License-Identifier: Apache-2.0
// A plan as plain data: what the typed declaration hands to the generator. Templates end here.
#pragma once
#include <rankc/mesh/layout.hpp>
#include <rankc/recipe.hpp>
#include <rankc/schedule/timing.hpp>
#include <rankc/typed/trace.hpp>

#include <string>
#include <vector>

namespace rankc {

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
  int rows = 0;  // sequences per microbatch and data-parallel rank
  int vocab_used = 0;
  std::vector<layer_kind> kinds;
  std::vector<int> blocks_of_stage;  // repeated layers on each stage
};

/// The kinds of each stage's layers, in order: what comes before the repeated layers is on the first stage, what comes
/// after on the last.
/// Shapes: (stages), then (layers of the stage), indices of plan_data::kinds.
inline std::vector<std::vector<int>> kinds_of_stages(const plan_data& p) {
  std::vector<std::vector<int>> stages(p.blocks_of_stage.size());
  std::size_t stage = 0;
  int on_stage = 0;
  for (std::size_t k = 0; k < p.kinds.size(); ++k)
    for (int i = 0; i < p.kinds[k].count; ++i) {
      if (p.kinds[k].repeated && on_stage == p.blocks_of_stage[stage]) ++stage, on_stage = 0;
      on_stage += p.kinds[k].repeated;
      stages[stage].push_back(static_cast<int>(k));
    }
  return stages;
}

}  // namespace rankc
