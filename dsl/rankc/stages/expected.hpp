// SPDX-License-Identifier: Apache-2.0
// The expected times of a plan's actions, from the costs of its layers and the speed of its machines. The
// generator uses them to place messages and to draw schedules.
#pragma once
#include <rankc/recipe/training.hpp>
#include <rankc/stages/forms.hpp>
#include <rankc/stages/kinds_of_stages.hpp>
#include <rankc/stages/layer_cost.hpp>
#include <rankc/stages/repeated_ops.hpp>
#include <rankc/schedule/timing.hpp>

#include <algorithm>

namespace rankc {

/// The cost of each stage.
/// Shapes: (stages). Units: as layer_cost.
constexpr std::vector<double> costs_of_stages(const plan_data& p) {
  std::vector<double> of_kind, of_stage;
  for (const layer_kind& k : p.kinds)
    of_kind.push_back(static_cast<double>(cost_of(k.ops, p.dims).in(p.actions.inference)));
  for (const std::vector<int>& kinds : kinds_of_stages(p)) {
    of_stage.push_back(0);
    for (int k : kinds) of_stage.back() += of_kind[k];
  }
  return of_stage;
}

/// The cost of the ops that each stage's backward repeats, in units of an average stage's forward.
/// Shapes: (stages).
constexpr std::vector<double> repeated_by_stages(const plan_data& p) {
  const std::vector<layer_form> forms = forms_of(p);
  std::vector<double> repeated;
  double forward = 0;
  for (const std::vector<int>& layers : forms_of_stages(p)) {
    repeated.push_back(0);
    for (int f : layers) {
      const trace& t = p.kinds[forms[f].kind].ops;
      forward += static_cast<double>(cost_of(t, p.dims).forward);
      if (forms[f].recomputes) repeated.back() += repeated_cost(t, p.recipe.recompute, p.dims);
    }
  }
  for (double& r : repeated) r = forward > 0 ? r * static_cast<double>(repeated.size()) / forward : 0;
  return repeated;
}

/// Costs in units of an average stage's forward. Each half of backward costs as much as forward, and a
/// repeated op as much as in forward. A message takes its bytes over the bandwidth between the ranks, or a
/// tenth of a forward if the cluster specifies no speed.
constexpr costs expected_costs(const plan_data& p) {
  constexpr double utilization = 0.5;  // fraction of the peak, a usual value for large matrices
  costs c{.send = 0.1};
  const std::vector<double> of_stage = costs_of_stages(p);
  double mean = 0;
  for (double cost : of_stage) mean += cost / static_cast<double>(of_stage.size());
  if (mean == 0) return c;
  for (double cost : of_stage) c.stage.push_back(cost / mean);
  if (p.recipe.recompute.any()) c.again = repeated_by_stages(p);
  const double bandwidth =
      p.dims.world > p.machines.ranks_per_node ? p.machines.between_nodes : p.machines.within_node;
  if (p.machines.flops == 0 || bandwidth == 0) return c;
  const double tokens = static_cast<double>(p.rows) * p.recipe.seq;
  const type& x = p.kinds.back().ops.values[p.kinds.back().ops.input];  // all boundaries have this type
  const double bytes =
      tokens * x.shape[1].size / token_shards(p.dims) * static_cast<double>(size_of(p.recipe.precision));
  const double forward = mean * x.shape[0].size / (p.actions.inference ? 1 : 3);
  c.send = bytes / bandwidth / (forward / (p.machines.flops * utilization));
  return c;
}

}  // namespace rankc
