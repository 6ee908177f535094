// SPDX-License-Identifier: Apache-2.0
// The fastest plan that fits, found by the compiler: best_plan<model, cluster, recipe>(). The one include
// does not have it: it costs a compiler a minute on eight GPUs. `rankc search` finds the same in
// milliseconds, and writes it as a header.
#pragma once
#include <rankc/plan/plan_value.hpp>
#include <rankc/plan_search/ranking.hpp>
#include <rankc/step_time.hpp>

namespace rankc {

namespace detail {
/// No plan of the model fits into the memory of the cluster's GPUs.
struct no_plan_fits {
  long long memory;
};
}  // namespace detail

/// The plan whose step is predicted to be the fastest of all that break no rule and fit, on all GPUs of a
/// cluster: of every degree, published schedule, size of microbatches, and, where the recipe leaves it open,
/// recomputation.
/// Errors: not a constant where no plan fits, or the cluster names no GPU that rankc knows.
template <const auto& Model, const auto& Cluster, const auto& Recipe>
consteval auto best_plan() {
  const plan_search::question q{Cluster, &detail::speed_of(Cluster), Recipe,
                                Cluster.nodes * Cluster.ranks_per_node};
  const plan_search::ranking found = plan_search::rank_plans(Model, q);
  if (found.top.empty()) throw detail::no_plan_fits{Cluster.memory};
  const plan_search::choice& best = found.top.front().choice;
  training recipe = Recipe;
  recipe.recompute = best.recompute;
  return plan{
      .model = Model, .dims = best.dims, .schedule = best.schedule, .recipe = recipe, .cluster = Cluster};
}

}  // namespace rankc
