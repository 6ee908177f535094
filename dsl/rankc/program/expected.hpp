// SPDX-License-Identifier: Apache-2.0
// What a plan's actions are expected to take: from the operations of its layers and the speed of its machines. Messages
// are placed by these costs.
#pragma once
#include <rankc/program/forms.hpp>
#include <rankc/program/repeated_ops.hpp>
#include <rankc/base/recipe.hpp>
#include <rankc/schedule/timing.hpp>
#include <rankc/typed/trace.hpp>

#include <algorithm>

namespace rankc {

/// Floating-point operations of a layer's forward.
/// Units: per token. Source: PaLM (Chowdhery et al. 2022), appendix B.
constexpr double forward_flops(const trace& layer) {
  double total = 0;
  for (std::size_t i = 0; i < layer.forward_ops; ++i)
    total += layer.ops[i].kind->flops(sizes_of(layer, layer.ops[i])) / layer.values[layer.input].shape[0].size;
  return total;
}

/// Operations of each stage's forward.
/// Shapes: (stages). Units: per token.
constexpr std::vector<double> flops_of_stages(const auto& p) {
  std::vector<double> flops;
  for (const std::vector<int>& kinds : kinds_of_stages(p)) {
    flops.push_back(0);
    for (int k : kinds) flops.back() += forward_flops(p.kinds[k].ops);
  }
  return flops;
}

/// Operations that each stage's backward repeats of forward.
/// Shapes: (stages). Units: per token.
constexpr std::vector<double> repeated_flops_of_stages(const auto& p) {
  const std::vector<layer_form> forms = forms_of(p);
  std::vector<double> flops;
  for (const std::vector<int>& layers : forms_of_stages(p)) {
    flops.push_back(0);
    for (int f : layers)
      if (forms[f].recomputes) flops.back() += repeated_flops(p.kinds[forms[f].kind].ops, p.recipe.recompute);
  }
  return flops;
}

/// Costs in units of an average stage's forward; each half of backward is taken to cost as much, and what it repeats as much
/// as in forward. A message takes its
/// bytes at the bandwidth between the ranks, or a tenth of a forward where machines do not say.
constexpr costs expected_costs(const auto& p) {
  constexpr double utilization = 0.5;  // of the peak, as large matrices have it
  costs c{.send = 0.1};
  std::vector<double> flops = flops_of_stages(p);
  double mean = 0;
  for (double f : flops) mean += f / static_cast<double>(flops.size());
  if (mean == 0) return c;
  for (double f : flops) c.stage.push_back(std::max(f / mean, 0.01));
  if (p.recipe.recompute.any())
    for (double f : repeated_flops_of_stages(p)) c.again.push_back(f / mean);
  const double bandwidth = p.dims.world > p.machines.ranks_per_node ? p.machines.between_nodes : p.machines.within_node;
  if (p.machines.flops == 0 || bandwidth == 0) return c;
  const double tokens = static_cast<double>(p.rows) * p.recipe.seq;
  const type& x = p.kinds.back().ops.values[p.kinds.back().ops.input];  // as every boundary is
  const double bytes = tokens * x.shape[1].size / (p.dims.sequence_parallel ? p.dims.tp : 1) * (p.recipe.precision == f64 ? 8 : p.recipe.precision == f32 ? 4 : 2);
  c.send = bytes / bandwidth / (mean * tokens / p.dims.tp / (p.machines.flops * utilization));
  return c;
}

}  // namespace rankc
