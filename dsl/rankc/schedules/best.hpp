// SPDX-License-Identifier: Apache-2.0
// The best schedule for given costs and memory: the best of the published ones and of the greedy patterns,
// improved by search.
#pragma once
#include <rankc/schedules/builder/greedy.hpp>
#include <rankc/schedule/placement.hpp>
#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/gpipe.hpp>
#include <rankc/schedules/group_interleaved.hpp>
#include <rankc/schedules/interleaved_one_f_one_b.hpp>
#include <rankc/schedules/interleaved_zero_bubble.hpp>
#include <rankc/schedules/looped_bfs.hpp>
#include <rankc/schedules/one_f_one_b.hpp>
#include <rankc/schedules/one_f_one_b_v.hpp>
#include <rankc/schedules/v_half.hpp>
#include <rankc/schedules/v_min.hpp>
#include <rankc/schedules/zero_bubble_1p.hpp>
#include <rankc/schedules/zero_bubble_2p.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

namespace rankc {

/// What a best schedule is asked for. More `runs` of the simulator find better ones. Where stages_per_rank is
/// 0 it is found too: from 1 to 4, with no more stages than `layers`, if these are given.
/// Units: `memory_limit` in microbatches of one stage that a rank holds. Where stages_per_rank is 0, it and
/// the costs are of all that a rank has of the model: a stage has its share of that, but a message takes as
/// long.
struct schedule_request {
  int pp = 1, stages_per_rank = 1, microbatches = 1;
  costs cost = {};
  int memory_limit = std::numeric_limits<int>::max();
  int runs = 30000;
  int layers = 0;
};

/// The best schedule found. `published` is the best of the portfolio within the limit, by
/// `published_makespan`; the table is it where `searched` is not set.
/// Units: of the costs.
struct schedule_choice {
  action_table table;
  std::string_view published;
  double published_makespan = std::numeric_limits<double>::infinity();
  bool searched = false;
  totals found;
  double bound =
      std::numeric_limits<double>::infinity();  // of the makespan, in the placements that were tried
  constexpr double over_bound() const { return found.makespan / bound - 1; }
};

namespace detail {

/// One microbatch after the other: what needs the least memory.
constexpr action_table one_by_one(const pipeline_load& load) {
  action_table order;
  order.microbatches = load.microbatches;
  order.rank_of_stage = load.rank_of_stage;
  for (int r = 0; r < load.pp; ++r) {
    order.begin.push_back(static_cast<int>(order.actions.size()));
    for (int m = 0; m < load.microbatches; ++m)
      for (int n = 0; n < 2 * load.stages(); ++n) {
        const bool forward = n < load.stages();
        const int s = forward ? n : 2 * load.stages() - 1 - n;
        if (load.rank_of_stage[s] == r)
          order.actions.push_back({forward ? action_kind::F : action_kind::I, s, m});
      }
  }
  order.begin.push_back(static_cast<int>(order.actions.size()));
  return order;
}

/// The heuristic schedules with as many stages on a rank, built for some costs.
constexpr void for_each_heuristic(const schedule_request& q, const planned_costs& cost, auto consider) {
  auto offer = [&](const auto& schedule) { consider(schedule.name, collect(schedule, q.pp)); };
  if (q.stages_per_rank == 1) {
    offer(schedules::zero_bubble_1p{q.microbatches, cost});
    offer(schedules::zero_bubble_2p{q.microbatches, cost});
  }
  if (q.stages_per_rank == 2) {
    offer(schedules::one_f_one_b_v{q.microbatches, cost});
    offer(schedules::v_half{q.microbatches, cost});
    offer(schedules::v_min{q.microbatches, cost});
  }
}

/// The portfolio with as many stages on a rank, each with a name, to `consider`. (DualPipe, which has the
/// parameters twice, is not asked.)
constexpr void for_each_published(const schedule_request& q, auto consider) {
  const int m = q.microbatches, v = q.stages_per_rank;
  auto offer = [&](const auto& schedule) {
    report refused;
    if constexpr (requires { schedule.check(refused, q.pp); }) schedule.check(refused, q.pp);
    if (refused.empty()) consider(schedule.name, collect(schedule, q.pp));
  };
  if (v == 1) {
    offer(schedules::gpipe{m});
    offer(schedules::one_f_one_b{m});
  }
  offer(schedules::looped_bfs{m, v});
  offer(schedules::interleaved_one_f_one_b{m, v});
  offer(schedules::interleaved_zero_bubble{m, v});
  offer(schedules::group_interleaved{m, v});
  offer(schedules::group_interleaved{m, v, (q.pp + 1) / 2});
  if (v == 2) {
    offer(schedules::zero_bubble_v{m});
    offer(schedules::dual_pipe_v{m});
  }
  for_each_heuristic(q, {}, consider);
}

/// Patterns with legs in halves of a forward, by their longest leg, shorter ones first, until `runs` of them
/// are tried.
constexpr void try_patterns(shortlist& list, int stages_per_rank, int runs) {
  const int legs = 2 * stages_per_rank;
  for (int longest = 0; longest <= 6; ++longest) {
    std::vector<int> leg(static_cast<std::size_t>(legs), 0);
    for (bool more = true; more;) {
      if (std::find(leg.begin(), leg.end(), longest) != leg.end())
        for (const double turn : {0.0, 1.0}) {
          if (runs-- <= 0) return;
          pattern p{{}, turn};
          for (const int l : leg) p.legs.push_back(l / 2.0);
          list.add(p);
        }
      more = false;
      for (int& l : leg) {  // count up, digit by digit
        if (l < longest) {
          ++l;
          more = true;
          break;
        }
        l = 0;
      }
    }
  }
}

}  // namespace detail

namespace detail {

/// The best for as many stages on a rank as are asked for, if it is better than `best`.
constexpr void find_best(const schedule_request& q, schedule_choice& best) {
  if (q.memory_limit < q.stages_per_rank) return;
  auto offer = [&](const action_table& t) {
    if (t.actions.empty()) return false;
    const totals found = total(t, q.cost);
    const bool better = best.table.actions.empty() || found.makespan < best.found.makespan;
    if (found.peak() > q.memory_limit || !better) return false;
    best.table = t;
    best.found = found;
    return true;
  };
  // Loop first; a V differs from it where there are several stages.
  pipeline_load unplaced{
      .pp = q.pp, .microbatches = q.microbatches, .cost = q.cost, .memory_limit = q.memory_limit};
  std::vector<pipeline_load> loads(q.pp > 1 && q.stages_per_rank > 1 ? 2 : 1, unplaced);
  for (int s = 0; s < q.pp * q.stages_per_rank; ++s) {
    loads[0].rank_of_stage.push_back(loop_placement(s, q.pp));
    if (loads.size() > 1) loads[1].rank_of_stage.push_back(v_placement(s, q.pp));
  }
  std::vector<shortlist> lists;
  for (const pipeline_load& load : loads) lists.emplace_back(load, 32);
  auto offer_published = [&](std::string_view name, const action_table& t) {
    if (!offer(t)) return;
    best.published = name;
    best.published_makespan = best.found.makespan;
    best.searched = false;
  };
  for_each_heuristic(q, {q.cost.forward, q.cost.input_grad, q.cost.weight_grad, q.cost.send},
                     offer_published);
  for_each_published(q, [&](std::string_view name, const action_table& t) {
    offer_published(name, t);
    for (std::size_t i = 0; i < loads.size(); ++i)
      if (t.rank_of_stage == loads[i].rank_of_stage) lists[i].add(order_of(t, action_kind::I));
  });
  for (std::size_t i = 0; i < loads.size(); ++i) {
    best.bound = std::min(best.bound, lower_bound(loads[i]));
    lists[i].add(one_by_one(loads[i]));
    pattern at_once{std::vector<double>(2 * static_cast<std::size_t>(q.stages_per_rank), 0)};
    lists[i].add(order_of(list_schedule(loads[i], place(loads[i], at_once), {}), action_kind::I));
    const int share = q.runs / static_cast<int>(loads.size());
    try_patterns(lists[i], q.stages_per_rank, share / 8);
    lists[i].improve(share - share / 8);
    best.searched |= offer(lists[i].table());
  }
}

/// The request for one of the numbers of stages on a rank that it leaves open.
constexpr schedule_request with_stages(schedule_request q, int stages_per_rank) {
  q.stages_per_rank = stages_per_rank;
  q.cost.forward /= stages_per_rank;
  q.cost.input_grad /= stages_per_rank;
  q.cost.weight_grad /= stages_per_rank;
  if (q.memory_limit <= std::numeric_limits<int>::max() / stages_per_rank) q.memory_limit *= stages_per_rank;
  return q;
}

}  // namespace detail

/// The best of the published schedules within the limit, or better.
/// Shapes: the request's `cost.stage` has a factor for each stage; with stages_per_rank 0 its length says how
/// many there are.
/// Errors: an empty table where the limit is below stages_per_rank, less than one microbatch needs.
/// Source: the portfolio and search of "auto" schedulers, Qi et al. 2023, arXiv:2401.10241, section 3.1.
constexpr schedule_choice best_schedule(const schedule_request& q) {
  schedule_choice best;
  if (q.stages_per_rank > 0) {
    detail::find_best(q, best);
    return best;
  }
  for (int v = 1; v <= 4; ++v) {
    if (v > 1 && q.layers > 0 && v * q.pp > q.layers) break;
    if (!q.cost.stage.empty() && static_cast<int>(q.cost.stage.size()) != v * q.pp) continue;
    detail::find_best(detail::with_stages(q, v), best);
  }
  return best;
}

}  // namespace rankc

namespace rankc::schedules {

/// best_schedule as a plan's schedule. A compiler runs the search, and needs seconds for each hundred `runs`
/// of a small pipeline: look for the numbers with `rankc schedule` first, or leave `runs` at 0 for the best
/// of the published ones. Where costs differ by stage, ask best_schedule itself. Errors: RC307.
/// Units: memory_limit in microbatches of one stage that a rank holds.
struct best {
  int microbatches = 1, stages_per_rank = 1;
  planned_costs cost = {};
  int memory_limit = std::numeric_limits<int>::max();
  int runs = 20;
  static constexpr std::string_view name = "best";
  constexpr action_table table(int pp) const {
    return best_schedule({.pp = pp,
                          .stages_per_rank = stages_per_rank,
                          .microbatches = microbatches,
                          .cost = cost,
                          .memory_limit = memory_limit,
                          .runs = runs})
        .table;
  }
  constexpr int rank_of_stage(int stage, int pp) const { return table(pp).rank_of_stage[stage]; }
  constexpr void check(report& out, int) const {
    if (memory_limit < stages_per_rank)
      refuse(out, 307) << "memory_limit=" << memory_limit
                       << ", but one microbatch alone holds its activations of the " << stages_per_rank
                       << " stages of a rank; take at least " << stages_per_rank;
  }
};

}  // namespace rankc::schedules
