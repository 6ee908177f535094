// SPDX-License-Identifier: Apache-2.0
// A plan as plain data, the same in the compiler and in the generator. Rules, stages, memory, times and the
// search read only this. Declarations are templates; code that reads this struct is not.
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

/// The experts of a model: their width, the normalisation of a token's weights to a sum of 1, and the dense
/// layers. A layer has experts if its number, counted from 1, is a multiple of `every`, and its index,
/// counted from 0, is not in `dense`.
struct known_experts {
  int ffn = 0;  // 0: no experts
  bool normalized = true;
  int every = 1;
  std::vector<int> dense{};
  model_routers routers{};  // routers of any model
  double capacity = 0;      // limit for an expert, as a multiple of an even share; 0: no limit
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

/// A layer as declared: traced once, used `count` times in total.
struct layer_kind {
  std::string_view name;
  trace ops;
  int count = 1;
  bool repeated = false;  // its parameters are named "layers.N."
};

/// Equal consecutive layers.
struct layer_run {
  int kind = 0;  // index of the plan's kinds
  int count = 1;
};

/// A plan. If its diagnostics refuse it, only the members that were known at that time are set. Names are
/// views: names of layers, schedules and families belong to their types, the plan's name to its creator.
struct plan_data {
  std::string_view name = {};
  report diagnostics = {};
  parallel_dims dims = {};
  training recipe = {};
  rankc::cluster machines = {};
  std::string_view schedule = {};
  action_table actions = {};
  costs expected = {};  // costs of the actions
  int rows = 0;         // sequences per microbatch and data-parallel rank
  int vocab_used = 0;
  std::vector<named_input> inputs = {};  // inputs of a step
  std::vector<layer_kind> kinds = {};
  std::vector<layer_run> runs = {};       // all layers in order
  std::vector<int> blocks_of_stage = {};  // repeated layers on each stage
  // Only the generator reads these:
  known_model model = {};
  hugging_face_format files = {};         // for the model; no format without a model_type
  std::vector<trace> on_one_device = {};  // by kind: traced with all degrees 1 and the whole batch of a step
};

/// The rows of an input of a microbatch on one rank.
constexpr std::size_t rows_of_input(const plan_data& p, const named_input& i) {
  if (i.extent == input_extent::step) return 1;
  const int cp = i.whole_sequences ? 1 : p.dims.cp;
  const std::size_t rows = static_cast<std::size_t>(p.rows);
  return (i.extent == input_extent::token ? rows * p.recipe.seq : rows) / cp;
}
/// The elements of an input of a microbatch on one rank.
constexpr std::size_t elements_of_input(const plan_data& p, const named_input& i) {
  return rows_of_input(p, i) * i.width();
}
/// The size of an input of a microbatch on one rank, for elements of `real` and `wide` bytes.
/// Units: bytes.
constexpr std::size_t bytes_of_input(const plan_data& p, const named_input& i, std::size_t real,
                                     std::size_t wide) {
  if (i.holds == element::index) return elements_of_input(p, i) * sizeof(std::int32_t);
  return elements_of_input(p, i) * (i.holds == element::real ? real : wide);
}
/// The size of an input of all microbatches on one rank.
/// Units: bytes.
constexpr std::size_t bytes_in_step(const plan_data& p, const named_input& i, std::size_t real,
                                    std::size_t wide) {
  const std::size_t times = i.computed ? 1 : static_cast<std::size_t>(p.actions.microbatches);
  return times * bytes_of_input(p, i, real, wide);
}
/// True if the model of a plan reads tokens.
constexpr bool reads_tokens(const plan_data& p) { return p.inputs.front() == inputs::tokens; }

}  // namespace rankc
