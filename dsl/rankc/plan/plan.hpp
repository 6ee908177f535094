// SPDX-License-Identifier: Apache-2.0
// The plan as plain data, from its values: model, dims, schedule, recipe and cluster. The compiler and the
// generator check all rules by the same function.
#pragma once
#include <rankc/plan/layer_checks.hpp>
#include <rankc/recipe/cluster.hpp>
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

/// Checks sizes by the model's own rules, and by the numbered rules for the sizes that the model lists.
constexpr void check_sizes_of(report& out, const auto& model, const parallel_dims& given,
                              const training& recipe) {
  const std::size_t before = out.size();
  model.check(out);
  if constexpr (!requires { model.sizes(); }) {
    if constexpr (requires { model.vocab; }) check_vocabulary_used(out, model.vocab, model.vocab_used);
    if (resolve(given).cp > 1) check_length(out, recipe.seq, given);
  } else {
    if (out.size() > before) return;  // only legal sizes have divisors
    model_sizes sizes = model.sizes();
    sizes.tied_embeddings = false;  // no warning: tied embeddings are lowered without a change by the user
    check_model(out, sizes, given);
    // Without cp, sequences are concatenated and sharded as tokens.
    if (resolve(given).cp > 1) check_length(out, recipe.seq, given);
  }
}

/// Checks a schedule by its own rules, and by the rules for its stages.
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

/// For each parameter that several layers share, the stages of these layers.
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

/// Checks all rules that do not need the layers. A plan that breaks one of them cannot be traced.
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

}  // namespace detail

/// Checks a plan that is given as values. All rules are checked at once, but rules of shapes need legal
/// sizes. The result has the plan's diagnostics. If these refuse nothing, it has the layers and their stages
/// as well.
constexpr plan_data check_plan(const auto& model, const parallel_dims& given, const auto& schedule,
                               const training& recipe, const cluster& machines,
                               std::span<const int> stage_layers = {}) {
  plan_data p{.dims = resolve(given), .recipe = recipe, .machines = machines, .schedule = schedule.name};
  report& out = p.diagnostics;
  detail::check_before_layers(out, model, given, schedule, recipe, machines, stage_layers);
  if (!accepts(out)) return p;

  const int ranks = static_cast<int>(batch_ranks(p.dims));
  p.rows = recipe.global_batch / schedule.microbatches / ranks;
  if constexpr (requires { model.vocab; }) p.vocab_used = model.vocab_used ? model.vocab_used : model.vocab;
  p.inputs = detail::inputs_of(model, recipe);
  detail::check_inputs(out, p.inputs, model, recipe);
  if (!accepts(out)) return p;
  detail::check_end_of_document(out, recipe, p.vocab_used);
  detail::layer_checks layers(p, given, detail::context_of(model, p),
                              one_device_context(model, recipe, schedule.microbatches, ranks),
                              stage_layers.empty());
  each_entry(model, [&](const auto& entry, int id) { layers.add(entry, id); });
  const action_table actions = complete(schedule, p.dims.pp);
  const detail::block_count blocks = detail::count_blocks(model);
  layers.check_all(blocks.repeats ? blocks.blocks : 0, actions.inference);
  const std::size_t before = out.size();
  check_actions(out, actions);
  if (out.size() > before) return p;
  p.blocks_of_stage = split_layers(layers.stack(), actions, stage_layers);
  check_lowerable(out, actions, detail::find_stages(layers.parameters(), p.blocks_of_stage));
  return p;
}

}  // namespace rankc
