// SPDX-License-Identifier: Apache-2.0
// Judges a choice as a plan: checks it, counts its memory and predicts its step.
#pragma once
#include <rankc/cost_model/step_time.hpp>
#include <rankc/memory/worst_rank.hpp>
#include <rankc/plan/make_plan_data.hpp>
#include <rankc/plan_search/choice.hpp>

#include <optional>

namespace rankc::plan_search {

/// A choice that breaks no rule, except possibly that of memory.
/// Units: bytes of the rank with the most memory.
struct judged {
  plan_search::choice choice;
  cost_model::step_prediction time;
  std::size_t bytes = 0;
  bool fits = true;
  /// True if this plan is better: faster or, if equally fast, smaller.
  constexpr bool is_before(const judged& other) const {
    return time.step != other.time.step ? time.step < other.time.step : bytes < other.bytes;
  }
};

constexpr bool fit(const cluster& machines, std::size_t bytes) {
  return machines.memory == 0 || bytes <= static_cast<std::size_t>(machines.memory);
}

/// A choice as a plan.
constexpr plan_data plan_of(const auto& model, const question& q, const choice& c) {
  training recipe = q.recipe;
  recipe.recompute = c.recompute;
  return make_plan_data(model, c.dims, c.schedule, recipe, q.machines);
}

/// Judges a choice. Empty if it breaks a rule other than memory.
/// Errors: those of all rules but memory, to the report.
constexpr std::optional<judged> judge(const auto& model, const question& q, const choice& c, report& out) {
  plan_data counted = plan_of(model, q, c);
  out = std::move(counted.diagnostics);
  if (!accepts(out)) return {};
  const lowering::layer_setting s = rankc::detail::setting_for(counted, target::cuda);
  const std::vector<lowering::layer_program> layers = lowering::lower_layers(counted, s);
  judged j{.choice = c, .time = cost_model::predict_step(counted, *q.gpu, s, layers)};
  j.bytes = rankc::detail::find_worst(counted, layers, s, false).bytes;
  j.fits = fit(q.machines, j.bytes);
  return j;
}

}  // namespace rankc::plan_search
