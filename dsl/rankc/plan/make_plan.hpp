// SPDX-License-Identifier: Apache-2.0
// From a plan's values to plain data, at run time: what a generator does first.
#pragma once
#include <rankc/models/one_device.hpp>
#include <rankc/plan/plan_data.hpp>
#include <rankc/plan/plan_value.hpp>
#include <rankc/stages/expected.hpp>
#include <rankc/schedule/fuse.hpp>

namespace rankc {

/// A plan as plain data, from values that are made at run time.
inline plan_data make_plan(std::string name, const auto& model, const parallel_dims& given,
                           const auto& schedule, const training& recipe, const cluster& machines,
                           std::span<const int> stage_layers = {}) {
  plan_data p{.name = std::move(name),
              .diagnostics = {},
              .dims = resolve(given),
              .recipe = recipe,
              .machines = machines,
              .schedule = std::string(schedule.name),
              .actions = {},
              .expected = {},
              .model = {},
              .kinds = {},
              .on_one_device = {},
              .blocks_of_stage = {}};
  check_plan(
      p.diagnostics, model, given, schedule, recipe, machines,
      [&](std::string_view kind, int count, bool repeated, const trace& t) {
        p.kinds.push_back({std::string(kind), t, count, repeated});
      },
      stage_layers);
  if (!accepts(p.diagnostics)) return p;
  p.actions = actions_of(schedule, p.dims);
  check_actions(p.diagnostics, p.actions);  // the check above was of the table before it was fused
  p.rows = recipe.global_batch / schedule.microbatches / static_cast<int>(batch_ranks(p.dims));
  p.vocab_used = model.vocab_used ? model.vocab_used : model.vocab;
  if constexpr (requires { model.family; }) p.model = {std::string(model.family), model.sizes()};
  if constexpr (requires { model.theta; }) p.model.theta = model.theta;
  if constexpr (requires { model.rope_scaling; }) p.model.scaling = model.rope_scaling;
  if constexpr (requires { model.norm_eps; }) p.model.norm_eps = model.norm_eps;
  if constexpr (requires { model.expert_ffn; }) p.model.experts.ffn = model.expert_ffn;
  if constexpr (requires { model.norm_topk_prob; }) p.model.experts.normalized = model.norm_topk_prob;
  if constexpr (requires { model.routers(); }) p.model.experts.routers = model.routers();
  if constexpr (requires { model.capacity; }) p.model.experts.capacity = model.capacity;
  if constexpr (requires { model.mlp_only_layers; }) {
    p.model.experts.every = model.decoder_sparse_step;
    for (int i = 0; i < model.mlp_only_layers.count(); ++i)
      p.model.experts.dense.push_back(model.mlp_only_layers[i]);
  }
  p.blocks_of_stage = split_layers(p, stage_layers);
  p.expected = expected_costs(p);
  p.on_one_device =
      trace_on_one_device(model, recipe, schedule.microbatches, static_cast<int>(batch_ranks(p.dims)));
  return p;
}

/// A plan as plain data. Where parts are missing there are diagnostics alone.
template <class Model, class Schedule, class StageLayers>
plan_data make_plan(std::string name, const plan<Model, Schedule, StageLayers>& p) {
  plan_data refused{};
  check_parts(refused.diagnostics, p.model, p.schedule, p.recipe, p.cluster);
  if constexpr (detail::a_model<Model> && detail::a_schedule<Schedule>)
    if (accepts(refused.diagnostics))
      return make_plan(std::move(name), p.model, p.dims, p.schedule, p.recipe, p.cluster, p.stage_layers);
  refused.name = std::move(name);
  return refused;
}

}  // namespace rankc
