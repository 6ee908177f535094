// SPDX-License-Identifier: Apache-2.0
// The plan that the generator gets: plain data, the plan's name, and the model traced for one device.
#pragma once
#include <rankc/models/one_device.hpp>
#include <rankc/plan/make_plan_data.hpp>

#include <mutex>
#include <set>
#include <string>

namespace rankc {

namespace detail {

/// The description of a model of a published family. For other models, it describes only the routers.
inline known_model find_known(const auto& model) {
  known_model known;
  if constexpr (requires { model.family; }) {
    const auto d = model.describe();
    known = {
        .family = model.family,
        .sizes = d.sizes,
        .theta = d.theta,
        .scaling = d.rope_scaling,
        .norm_eps = d.norm_eps,
        .experts = {
            .ffn = d.experts.ffn, .normalized = d.experts.router.normalized, .capacity = d.experts.capacity}};
  }
  if constexpr (requires { model.routers(); }) known.experts.routers = model.routers();
  if constexpr (requires { model.mlp_only_layers; }) {
    known.experts.every = model.decoder_sparse_step;
    for (int i = 0; i < model.mlp_only_layers.count(); ++i)
      known.experts.dense.push_back(model.mlp_only_layers[i]);
  }
  return known;
}

/// Stores a plan's name until the program ends, and returns a view of it.
inline std::string_view keep_name(std::string name) {
  static std::mutex guard;
  static std::set<std::string> names;
  const std::lock_guard<std::mutex> lock(guard);
  return *names.insert(std::move(name)).first;
}

}  // namespace detail

/// A plan for the generator, from values that are known only at run time.
inline plan_data make_plan(std::string name, const auto& model, const parallel_dims& given,
                           const auto& schedule, const training& recipe, const cluster& machines,
                           std::span<const int> stage_layers = {}) {
  plan_data p = make_plan_data(model, given, schedule, recipe, machines, stage_layers);
  p.name = detail::keep_name(std::move(name));
  if (!accepts(p.diagnostics)) return p;
  check_actions(p.diagnostics, p.actions);  // the rules have checked the actions before they were fused
  p.model = detail::find_known(model);
  if constexpr (requires { model.hugging_face(); }) p.files = model.hugging_face();
  p.on_one_device = trace_on_one_device(model, recipe, schedule.microbatches,
                                        static_cast<int>(batch_ranks(p.dims)), kinds_of_runs(p));
  return p;
}

/// A declared plan, for the generator.
template <class Model, class Schedule, class StageLayers>
plan_data make_plan(std::string name, const plan<Model, Schedule, StageLayers>& p) {
  plan_data data = with_parts(p, [&](const auto&... part) { return make_plan(name, part...); });
  data.name = detail::keep_name(std::move(name));
  return data;
}

}  // namespace rankc
