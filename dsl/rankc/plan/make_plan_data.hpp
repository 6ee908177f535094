// SPDX-License-Identifier: Apache-2.0
// The complete plan as plain data: with the actions that its ranks run, and their expected times.
#pragma once
#include <rankc/plan/plan_value.hpp>
#include <rankc/schedule/fuse.hpp>
#include <rankc/stages/expected.hpp>

namespace rankc {

/// The plain data of a plan that is given as values. If it breaks a rule, the result is that of check_plan.
constexpr plan_data make_plan_data(const auto& model, const parallel_dims& given, const auto& schedule,
                                   const training& recipe, const cluster& machines,
                                   std::span<const int> stage_layers = {}) {
  plan_data p = check_plan(model, given, schedule, recipe, machines, stage_layers);
  if (!accepts(p.diagnostics)) return p;
  p.actions = actions_of(schedule, p.dims);
  p.expected = expected_costs(p);
  return p;
}

/// The plain data of a declared plan. If it breaks a rule, its diagnostics refuse it.
template <class Model, class Schedule, class StageLayers>
constexpr plan_data make_plan_data(const plan<Model, Schedule, StageLayers>& p) {
  return with_parts(p, [](const auto&... part) { return make_plan_data(part...); });
}

namespace detail {
/// The plain data of a declared plan that breaks no rule.
/// Errors: throws the first diagnostic.
constexpr plan_data legal_data(const auto& declared) {
  plan_data p = make_plan_data(declared);
  if (!accepts(p.diagnostics)) throw p.diagnostics.front();
  return p;
}
}  // namespace detail

}  // namespace rankc
