// SPDX-License-Identifier: Apache-2.0
// The best schedule for given costs and a memory limit: the best of the published schedules and of greedy
// patterns, improved by search.
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

/// A search for the best schedule. More `runs` of the simulator find better schedules. With stages_per_rank 0
/// the search also tries 1 to 4 stages per rank; `layers`, if given, limits the number of stages.
/// Units: `memory_limit` counts the microbatches of one stage whose activations a rank holds at once. With
/// stages_per_rank 0, `memory_limit` and the costs are those of all layers of a rank. A stage then costs its
/// fraction, but `send` stays the same.
struct schedule_request {
  int pp = 1, stages_per_rank = 1, microbatches = 1;
  costs cost = {};
  int memory_limit = std::numeric_limits<int>::max();
  int runs = 30000;
  int layers = 0;
};

/// The best schedule found. `published` names the last published schedule that beat everything tried before
/// it, and `published_makespan` is its makespan. `table` is that schedule unless `searched` is set.
/// Units: of the costs.
struct schedule_choice {
  action_table table;
  std::string_view published;
  double published_makespan = std::numeric_limits<double>::infinity();
  bool searched = false;
  totals found;
  double bound =
      std::numeric_limits<double>::infinity();  // lower bound of the makespan over all placements tried
  constexpr double over_bound() const { return found.makespan / bound - 1; }
};

namespace detail {

/// All passes of one microbatch, then of the next: the order that needs the least memory.
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

/// Passes the heuristic schedules with q.stages_per_rank stages per rank, built for these costs, to
/// `consider`.
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

/// Passes the published schedules with q.stages_per_rank stages per rank to `consider`, each with its name.
/// DualPipe is left out because it stores the parameters twice.
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

/// Adds patterns until `runs` are tried. Their legs are waits of 0 to 3 forwards, in steps of a half. The
/// patterns with the shortest longest leg come first.
constexpr void try_patterns(shortlist& list, int stages_per_rank, int runs) {
  const int legs = 2 * stages_per_rank;
  for (int longest = 0; longest <= 6; ++longest) {
    std::vector<int> leg(static_cast<std::size_t>(legs), 0);
    for (bool more = true; more;) {
      if (std::find(leg.begin(), leg.end(), longest) != leg.end())
        for (const double turn : {0.0, 1.0}) {
          if (runs-- <= 0) return;
          action_pattern p{{}, turn};
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

/// Finds the best schedule with q.stages_per_rank stages per rank, and replaces `best` if that is faster.
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
  // The first load places the stages in a loop. With several ranks and several stages per rank, the second
  // one places them in a V.
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
    action_pattern at_once{std::vector<double>(2 * static_cast<std::size_t>(q.stages_per_rank), 0)};
    lists[i].add(order_of(list_schedule(loads[i], place(loads[i], at_once), {}), action_kind::I));
    const int share = q.runs / static_cast<int>(loads.size());
    try_patterns(lists[i], q.stages_per_rank, share / 8);
    lists[i].improve(share - share / 8);
    best.searched |= offer(lists[i].table());
  }
}

/// Sets a number of stages per rank that the request leaves open. Costs and memory limit become those of one
/// stage.
constexpr schedule_request with_stages(schedule_request q, int stages_per_rank) {
  q.stages_per_rank = stages_per_rank;
  q.cost.forward /= stages_per_rank;
  q.cost.input_grad /= stages_per_rank;
  q.cost.weight_grad /= stages_per_rank;
  if (q.memory_limit <= std::numeric_limits<int>::max() / stages_per_rank) q.memory_limit *= stages_per_rank;
  return q;
}

}  // namespace detail

/// The best published schedule within the memory limit, or a better one found by search.
/// Shapes: `cost.stage` of the request has one factor for each stage. With stages_per_rank 0 its length
/// determines the number of stages.
/// Errors: an empty table if memory_limit is below stages_per_rank, which one microbatch needs.
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

/// The result of best_schedule as the schedule of a plan. The compiler runs the search, and needs seconds for
/// each hundred `runs` of a small pipeline. Find the numbers with `rankc schedule` first, or set `runs` to 0
/// for a short search. For costs that differ by stage call best_schedule.
/// Units: memory_limit counts the microbatches of one stage whose activations a rank holds at once.
/// Errors: RC307.
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
