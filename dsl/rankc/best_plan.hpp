// SPDX-License-Identifier: Apache-2.0
// The fastest plan that fits, found by the compiler: best_plan<model, cluster, recipe>(). rankc.hpp does not
// include it, because it takes a compiler a minute for eight GPUs. `rankc search` finds the same plan in
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

/// The plan with the shortest predicted step of all that use all GPUs of a cluster, break no rule and fit.
/// The search covers every degree, published schedule and size of microbatches and, if the recipe leaves it
/// open, recomputation.
/// Errors: not a constant if no plan fits, or if the cluster names no GPU that rankc knows.
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
