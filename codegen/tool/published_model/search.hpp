// SPDX-License-Identifier: Apache-2.0
// The fastest plans of a problem, by exhaustive search.
#pragma once
#include "candidates.hpp"

#include <limits>

namespace rankc::published_model {

namespace detail {

/// Placements that split a layer over the same ranks of a domain.
struct placement_group {
  axis_times axes;
  const placement *begin, *end;
};

/// The plans of one tensor split, placed.
constexpr std::vector<placement> placements(const problem& q, const std::vector<plan>& plans) {
  std::vector<placement> all;
  if (plans.empty()) return all;
  all.reserve(plans.size());
  const double weights = work_of_layer(q.on, {q.by, plans[0].tp1, plans[0].tp2}).sums.weights;
  for (const plan& p : plans) all.emplace_back(q.on, q.by, p, q.global_batch, weights);
  return all;
}

constexpr std::vector<placement_group> groups_of(const problem& q, const std::vector<placement>& placements) {
  std::vector<placement_group> groups;
  plan last{.nv_tp1 = 0};
  for (const placement& placed : placements) {
    const plan& p = placed.plan;
    if (p.nv_tp1 != last.nv_tp1 || p.nv_tp2 != last.nv_tp2) {
      groups.push_back({times_of_axes(q.on, {p.tp1, p.nv_tp1}, {p.tp2, p.nv_tp2}), &placed, &placed});
    }
    groups.back().end = &placed + 1;
    last = p;
  }
  return groups;
}

}  // namespace detail

/// Calls `visit` with each plan, as (placement, mbs, nb, step_estimate). The plans of one split of a layer
/// come together, because there are far fewer such splits than plans.
template <typename Visit>
constexpr void visit_plans(const problem& q, Visit&& visit) {
  const std::vector<int> microbatches = divisors(q.global_batch);
  const std::vector<domain_split> domains = domain_splits(q);
  for (int tp1 : divisors(q.gpus)) {
    for (int tp2 : divisors(q.by == strategy::tp1d ? 1 : q.gpus / tp1)) {
      if (!detail::splits_layer(q, tp1, tp2)) continue;
      const std::vector<int> panels = detail::panels(q, tp1, tp2);
      const std::vector<placement> placements = detail::placements(q, placed_plans(q, domains, tp1, tp2));
      const std::vector<detail::placement_group> groups = detail::groups_of(q, placements);
      for (int mbs : microbatches) {
        if (static_cast<long long>(mbs) * q.on.model.l % detail::token_shards(q, tp1, tp2) != 0) continue;
        for (int nb : panels) {
          const layer_work work = work_of_layer(q.on, {q.by, tp1, tp2, mbs, nb});
          for (const detail::placement_group& g : groups) {
            const layer_cost layer = work.with_collectives(q.on, g.axes);
            for (const placement* p = g.begin; p != g.end; ++p) {
              if (p->local_batch % mbs == 0)
                visit(*p, mbs, nb, estimate_step(*p, layer, p->local_batch / mbs));
            }
          }
        }
      }
    }
  }
}

/// Units: `t` in seconds; infinity: no plan.
struct ranked_plan {
  double t = std::numeric_limits<double>::infinity();
  published_model::plan plan = {};
  constexpr auto operator<=>(const ranked_plan&) const = default;
};

/// A summary of the plans. Units: seconds, GB. Sums are over all plans, and over those that fit into memory.
struct search_result {
  int candidates = 0, feasible = 0;
  double sum_t = 0, sum_mem = 0, sum_t_feasible = 0, sum_mem_feasible = 0;
  double min_t = std::numeric_limits<double>::infinity(), max_t = 0, min_mem = min_t, max_mem = 0;
  // The fastest plans that fit into memory. Of equally fast plans the one with smaller numbers is first: D10.
  std::vector<ranked_plan> top = {};
};

/// The `keep` fastest plans. `top` is empty if no plan fits.
constexpr search_result search(const problem& q, std::size_t keep = 10) {
  search_result r;
  const double capacity = q.on.gpu.hbm_capacity;
  visit_plans(q, [&](const placement& p, int mbs, int nb, const step_estimate& s) {
    const double t = s.time, memory = s.memory;
    ++r.candidates;
    r.sum_t += t;
    r.sum_mem += memory;
    if (t < r.min_t) r.min_t = t;
    if (t > r.max_t) r.max_t = t;
    if (memory < r.min_mem) r.min_mem = memory;
    if (memory > r.max_mem) r.max_mem = memory;
    if (memory > capacity) return;
    ++r.feasible;
    r.sum_t_feasible += t;
    r.sum_mem_feasible += memory;
    const bool full = r.top.size() == keep;
    if (full && (keep == 0 || t > r.top.back().t)) return;
    const ranked_plan found{t, p.with(mbs, nb)};
    if (full && r.top.back() < found) return;
    if (full) r.top.pop_back();
    r.top.insert(std::upper_bound(r.top.begin(), r.top.end(), found), found);
  });
  return r;
}

/// The fastest plan that fits into memory, for constant expressions.
constexpr ranked_plan fastest(const problem& q) {
  const search_result r = search(q, 1);
  return r.top.empty() ? ranked_plan{} : r.top.front();
}

}  // namespace rankc::published_model
