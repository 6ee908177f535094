// SPDX-License-Identifier: Apache-2.0
// The plan as plain data, from its values: model, dims, schedule, recipe and cluster. The compiler and the
// generator check all rules by the same function.
#pragma once
#include <rankc/recipe/cluster.hpp>
#include <rankc/rules/layers/inputs.hpp>
#include <rankc/rules/layers/layers.hpp>
#include <rankc/rules/layers/linears.hpp>
#include <rankc/rules/layers/loss.hpp>
#include <rankc/rules/layers/parameters.hpp>
#include <rankc/rules/layers/tuning.hpp>
#include <rankc/mesh/layout.hpp>
#include <rankc/recipe/training.hpp>
#include <rankc/rules/values/batch.hpp>
#include <rankc/rules/values/cluster.hpp>
#include <rankc/rules/values/dims.hpp>
#include <rankc/rules/values/lowered_dims.hpp>
#include <rankc/rules/values/model.hpp>
#include <rankc/models/one_device.hpp>
#include <rankc/stages/kinds_of_stages.hpp>
#include <rankc/stages/plan_data.hpp>
#include <rankc/stages/split_layers.hpp>
#include <rankc/rules/values/pipeline.hpp>
#include <rankc/rules/values/recipe.hpp>
#include <rankc/schedule/check.hpp>
#include <rankc/schedule/complete.hpp>
#include <rankc/rules/layers/lowerable.hpp>

namespace rankc {

namespace detail {

/// The model's own rules of its sizes, and the numbered rules of the sizes that it lists.
constexpr void check_sizes_of(report& out, const auto& model, const parallel_dims& given,
                              const training& recipe) {
  const std::size_t before = out.size();
  model.check(out);
  if constexpr (!requires { model.sizes(); }) {
    check_vocabulary_used(out, model.vocab, model.vocab_used);
    if (resolve(given).cp > 1) check_length(out, recipe.seq, given);
  } else {
    if (out.size() > before) return;  // only legal sizes have divisors
    model_sizes sizes = model.sizes();
    sizes.tied_embeddings = false;  // lowered: the user need not change anything
    check_model(out, sizes, given);
    if (resolve(given).cp > 1)
      check_length(out, recipe.seq, given);  // else sequences are sharded end to end, as tokens
  }
}

/// The schedule's own rules, and those of its stages.
constexpr void check_schedule(report& out, const auto& schedule, const parallel_dims& given,
                              block_count blocks, std::span<const int> stage_layers) {
  const int pp = resolve(given).pp;
  const std::size_t before = out.size();
  if constexpr (requires { schedule.check(out, pp); })
    if (pp >= 1) schedule.check(out, pp);
  if (out.size() > before) return;  // only a legal schedule has stages
  const int stages = pp >= 1 ? count_stages(schedule, pp) : schedule.stages_per_rank;
  if (pp >= 1 && stages < pp) {
    refuse(out, 301) << "the schedule has " << stages << (stages == 1 ? " stage" : " stages")
                     << " (stages_per_rank=" << schedule.stages_per_rank << ") for pp=" << pp
                     << " ranks; each rank has at least 1 stage";
    return;
  }
  if (blocks.blocks > 0 && !blocks.missing.empty()) {
    refuse(out, 206) << "layer '" << blocks.missing
                     << "' is repeated less than once; a layer is repeated at least 1 time";
    return;
  }
  const bool equal = pp < 1 || stages % pp == 0;
  if (blocks.repeats)
    check_pipeline(out, blocks.blocks, given, equal ? stages / std::max(pp, 1) : 1, stage_layers,
                   equal ? 0 : stages, blocks.ends);
  else if (stages > 1 || !stage_layers.empty())
    refuse(out, 227) << "the model has no repeated layers, and they are what fills " << stages
                     << (stages == 1 ? " stage" : " stages")
                     << "; write repeat{count, layer}, or take one stage without stage_layers";
}

/// The stages of the layers that have a parameter in common.
constexpr std::vector<std::vector<int>> find_stages(const parameter_book& book,
                                                    std::span<const int> blocks_of_stage) {
  std::vector<std::vector<int>> stages;
  for (const parameter_use& p : book.uses()) {
    if (p.at.size() < 2) continue;
    stages.emplace_back();
    for (int blocks : p.at)
      stages.back().push_back(static_cast<int>(stage_of_alone(blocks, blocks_of_stage)));
  }
  return stages;
}

/// All rules that do not need the layers. A plan that breaks one of them cannot be traced.
constexpr void check_before_layers(report& out, const auto& model, const parallel_dims& given,
                                   const auto& schedule, const training& recipe, const cluster& machines,
                                   std::span<const int> stage_layers = {}) {
  if (check_dims(out, given)) check_lowered(out, resolve(given));
  check_sizes_of(out, model, given, recipe);
  check_batch(out,
              {.global_batch = recipe.global_batch, .microbatches = schedule.microbatches, .seq = recipe.seq},
              given);
  check_recipe(out, recipe);
  check_schedule(out, schedule, given, count_blocks(model), stage_layers);
  check_cluster(out, machines, given);
}

/// The kinds of layers that are traced, by the id of their entry and the type of their input.
class traced_kinds {
 public:
  /// The index of a kind; a new one if no equal layer had such an input.
  constexpr int find(int id, const type& input) {
    for (std::size_t k = 0; k < known_.size(); ++k)
      if (known_[k].id == id && known_[k].input == input) return static_cast<int>(k);
    known_.push_back({id, input});
    return static_cast<int>(known_.size()) - 1;
  }

 private:
  struct kind {
    int id;
    type input;
  };
  std::vector<kind> known_;
};

/// The context that the layers of a plan are traced in. Its sizes break no rule.
constexpr layer_context context_of(const auto& model, const plan_data& p) {
  const parallel_dims& d = p.dims;
  const int ranks = static_cast<int>(batch_ranks(d));
  const dim tokens{"tokens", p.rows * ranks * p.recipe.seq};
  return {tokens,
          p.rows,
          p.recipe.seq,
          d.sequence_parallel,
          1.0 / (static_cast<double>(p.recipe.global_batch) * p.recipe.seq),
          d.ulysses > 1,
          ring_ranks(d),
          d.ep,
          d.etp,
          repeats_tokens(d),
          ranks * d.cp * token_shards(d),
          statistics_of(model, tokens.size, tokens.size, ranks),
          p.inputs};
}

/// All rules of one traced layer. `c` is the context that it was traced in, `alone` that of one device.
constexpr void check_traced(plan_data& p, const auto& layer, const trace& t, const parallel_dims& given,
                            const layer_context& c, const layer_context& alone) {
  report& out = p.diagnostics;
  const parallel_dims& d = p.dims;
  check_shards(out, t, given, c);
  check_row_shards(out, t, given);
  check_expert_shards(out, t, given);
  check_expert_columns(out, t, d);
  check_tokens_of_experts(out, t, d);
  check_sequences(out, t, d, p.recipe.seq);
  check_limits(out, t, d, p.recipe.seq);
  check_documents(out, t, layer.name);
  check_loss(out, layer, t, alone, p.recipe);
  check_groups(out, t, d);
  check_rings(out, t, d);
  check_vocabulary(out, t, layer.name, p.vocab_used);
  check_kernels(out, t, d);
  check_orders(out, t, d);
  check_gathers(out, t, d);
  check_tokens_alone(out, t, d);
  check_behind(out, t, layer.name, given, p.recipe.precision);
}

}  // namespace detail

/// Check a plan given as values, all rules at once. The result has the plan's diagnostics, and where these
/// refuse nothing its layers and their stages. Later rules assume earlier ones: sizes before shapes.
constexpr plan_data check_plan(const auto& model, const parallel_dims& given, const auto& schedule,
                               const training& recipe, const cluster& machines,
                               std::span<const int> stage_layers = {}) {
  plan_data p{.dims = resolve(given), .recipe = recipe, .machines = machines, .schedule = schedule.name};
  report& out = p.diagnostics;
  detail::check_before_layers(out, model, given, schedule, recipe, machines, stage_layers);
  if (!accepts(out)) return p;

  const parallel_dims& d = p.dims;
  const detail::block_count blocks = detail::count_blocks(model);
  const int ranks = static_cast<int>(batch_ranks(d));
  p.rows = recipe.global_batch / schedule.microbatches / ranks;
  p.vocab_used = model.vocab_used ? model.vocab_used : model.vocab;
  p.inputs = detail::inputs_of(model, recipe);
  detail::check_inputs(out, p.inputs);
  if (!accepts(out)) return p;
  detail::check_end_of_document(out, recipe, p.vocab_used);
  const layer_context c = detail::context_of(model, p),
                      alone = one_device_context(model, recipe, schedule.microbatches, ranks);
  type x = detail::token_type(c.tokens);
  detail::parameter_book parameters;
  detail::tuning tuned;
  std::vector<costed_entry> stack;
  int number = 0;  // of the next repeated layer
  int routers = 0;
  bool typed = true;               // so far; an error behind a mistake is its consequence
  bool families[n_op_families]{};  // of the ops of repeated layers
  bool has_fp8_linear = false;     // of repeated layers
  detail::traced_kinds known;
  each_entry(model, [&](const auto& entry, int id) {
    if (!typed) return;
    constexpr bool repeated = detail::is_repeat<std::decay_t<decltype(entry)>>;
    const auto& layer = detail::layer_of(entry);
    const int count = detail::count_of(entry);
    const int kind = known.find(id, x);
    p.runs.push_back({kind, count});
    if (kind == static_cast<int>(p.kinds.size()))
      p.kinds.push_back({layer.name, detail::trace_layer(layer, x, c, recipe), 0, repeated});
    const bool is_new = p.kinds[kind].count == 0;
    p.kinds[kind].count += count;
    const trace& t = p.kinds[kind].ops;
    if (is_new) {
      typed = detail::check_layer(out, t, layer.name, count);
      if (!typed) return;
      detail::check_traced(p, layer, t, given, c, alone);
      tuned.add(t);
      for (std::size_t i = 0; repeated && i < t.forward_ops; ++i)
        families[static_cast<int>(t.ops[i].kind->family)] = true;
      has_fp8_linear |= repeated && recipe.linears != linear_precision::plain && detail::has_fp8_linear(t, d);
    }
    parameters.add(out, t, layer.name, repeated, number, count);
    if (repeated) number += count;
    routers += count * detail::count_routers(t);
    stack.push_back({stage_layers.empty() ? cost_of(t, d) : layer_cost{}, count, repeated});
    x = t.values[t.result];
  });
  if (typed && x.ndim != 0) {
    complaint::put_shape(refuse(out, 212) << "the last layer's result is ", x);
    out.back().text << "; expected a loss: end the model with cross_entropy";
  }
  if (typed) detail::check_routers(out, c.routers, routers);
  const action_table actions = complete(schedule, d.pp);
  if (typed) tuned.check(out, recipe, actions.inference);
  if (typed) detail::check_linears(out, recipe, machines, has_fp8_linear);
  if (typed)
    check_recompute(out, recipe.recompute, blocks.repeats ? blocks.blocks : 0, actions.inference, families);
  const std::size_t before = out.size();
  check_actions(out, actions);
  if (out.size() > before) return p;
  p.blocks_of_stage = split_layers(stack, actions, stage_layers);
  check_lowerable(out, actions, detail::find_stages(parameters, p.blocks_of_stage));
  return p;
}

}  // namespace rankc
