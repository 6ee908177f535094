// SPDX-License-Identifier: Apache-2.0
// A plan as plain data, the same in the compiler and in the generator: rules, stages, memory, times and the
// search read this alone. Declarations are templates; nothing behind them is.
#pragma once
#include <rankc/recipe/cluster.hpp>
#include <rankc/ops/balance.hpp>
#include <rankc/mesh/layout.hpp>
#include <rankc/models/hugging_face.hpp>
#include <rankc/recipe/training.hpp>
#include <rankc/rules/values/setting.hpp>
#include <rankc/schedule/costs.hpp>
#include <rankc/trace/trace.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace rankc {

/// The experts of a model: their width, whether a token's weights add up to 1, and which layers are dense.
struct known_experts {
  int ffn = 0;  // 0: there are none
  bool normalized = true;
  int every = 1;             // a layer has experts if its number, counted from 1, divides by this,
  std::vector<int> dense{};  // and if it is none of these, counted from 0
  model_routers routers{};   // of any model
  double capacity = 0;       // of an expert, as a multiple of an even share; 0: no limit
};

/// A model of a published family.
struct known_model {
  std::string_view family;  // empty: none
  model_sizes sizes;
  double theta = 0;  // the base of rotary positions
  rope_scaling scaling{};
  double norm_eps = 0;
  known_experts experts{};
};

/// A layer as declared: traced once, used `count` times in all.
struct layer_kind {
  std::string_view name;
  trace ops;
  int count = 1;
  bool repeated = false;  // its parameters are named "layers.N."
};

/// Equal layers that follow each other.
struct layer_run {
  int kind = 0;  // index of the plan's kinds
  int count = 1;
};

/// A plan whose diagnostics refuse it has those of the other members that were known when it was refused.
/// Names are views: those of layers, schedules and families belong to their types, that of the plan to
/// whoever made it.
struct plan_data {
  std::string_view name = {};
  report diagnostics = {};
  parallel_dims dims = {};
  training recipe = {};
  rankc::cluster machines = {};
  std::string_view schedule = {};
  action_table actions = {};
  costs expected = {};  // of the actions
  int rows = 0;         // sequences per microbatch and data-parallel rank
  int vocab_used = 0;
  std::vector<named_input> inputs = {};  // of a step
  std::vector<layer_kind> kinds = {};
  std::vector<layer_run> runs = {};       // all layers in order
  std::vector<int> blocks_of_stage = {};  // repeated layers on each stage
  // The generator alone asks for these:
  known_model model = {};
  hugging_face_format files = {};         // of the model; without a model_type: none
  std::vector<trace> on_one_device = {};  // of each kind: with all degrees 1 and the whole batch of a step
};

/// The elements of an input of a microbatch on one rank.
constexpr std::size_t elements_of_input(const plan_data& p, const named_input& i) {
  if (i.of_step) return 1;
  const int tokens_of_sequence = i.whole_sequences ? p.recipe.seq : p.recipe.seq / p.dims.cp;
  return static_cast<std::size_t>(p.rows) * tokens_of_sequence * i.width();
}
/// The size of an input of a microbatch on one rank. `wide` is the size of a wide number.
/// Units: bytes.
constexpr std::size_t bytes_of_input(const plan_data& p, const named_input& i, std::size_t wide) {
  return elements_of_input(p, i) * (i.holds == element::index ? sizeof(std::int32_t) : wide);
}
/// The size of an input of all microbatches on one rank.
/// Units: bytes.
constexpr std::size_t bytes_in_step(const plan_data& p, const named_input& i, std::size_t wide) {
  const std::size_t times = i.of_step ? 1 : static_cast<std::size_t>(p.actions.microbatches);
  return times * bytes_of_input(p, i, wide);
}

}  // namespace rankc
