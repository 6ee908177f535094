// SPDX-License-Identifier: Apache-2.0
// Greedy schedules under costs and a memory limit: list schedules of a pattern, and their improvement by
// trials.
// Sources: Qi et al. 2023, arXiv:2401.10241, section 3.1; Qi et al. 2024, arXiv:2405.15362.
#pragma once
#include <rankc/schedules/builder/list.hpp>
#include <rankc/schedules/builder/steady.hpp>

namespace rankc {

/// The costs for which a schedule type is built. They have no lists, so they can be a template argument.
/// Units: any; one unit for all members.
struct planned_costs {
  double forward = 1, input_grad = 1, weight_grad = 1, send = 0;
  constexpr operator costs() const {
    return {.forward = forward, .input_grad = input_grad, .weight_grad = weight_grad, .send = send};
  }
};

/// An order of F and I (or B), the mode in which it was filled, and the result.
struct candidate {
  action_table order;
  bool eagerly = true;
  timeline line;
  constexpr void run(const pipeline_load& load) { line = fill(load, order, eagerly); }
};

/// The F and I (or B) of a table in their order, without the W.
constexpr action_table order_of(const action_table& t, action_kind backward) {
  action_table order = t;
  order.actions.clear();
  for (int r = 0; r < t.ranks(); ++r) {
    order.begin[r] = static_cast<int>(order.actions.size());
    for (int i = t.begin[r]; i < t.begin[r + 1]; ++i) {
      const action& a = t.actions[i];
      if (a.kind == action_kind::W) continue;
      order.actions.push_back({a.kind == action_kind::F ? a.kind : backward, a.stage, a.microbatch});
    }
  }
  order.begin.back() = static_cast<int>(order.actions.size());
  return order;
}

/// Moves the pass at `j` before the pass at `i` if that is better.
constexpr bool move_ahead(const pipeline_load& load, candidate& best, int i, int j) {
  candidate trial{best.order, best.eagerly, {}};
  action* const row = trial.order.actions.data();
  std::rotate(row + i, row + j, row + j + 1);
  trial.run(load);
  if (!trial.line.better_than(best.line)) return false;
  best = std::move(trial);
  return true;
}

/// Pulls ready passes into earlier waits if that is better, in at most `runs` trials. It pulls only forwards
/// until none is left to pull, then all passes. A forward leaves memory for `reserve` forwards of its rank's
/// later stages, because memory that is full on the way down is missing on the way up.
constexpr void tighten(const pipeline_load& load, candidate& best, const std::vector<int>& reserve,
                       int& runs) {
  constexpr double rounding = 1e-9;
  // forwards without their backward, by stage
  std::vector<int> open(static_cast<std::size_t>(load.stages()), 0);
  std::vector<char> seen(2 * open.size(), 0);
  bool moved = true, all = false;
  auto pull_into = [&](int i, int end) {
    std::fill(seen.begin(), seen.end(), 0);
    for (int j = i, kinds = 2 * load.stages_per_rank(); j < end && kinds > 0; ++j) {
      const action a = best.order.actions[j];
      const bool forward = a.kind == action_kind::F;
      char& known = seen[(forward ? 0 : open.size()) + a.stage];
      if (known) continue;  // only the next pass of each stage and direction is a candidate
      known = 1;
      --kinds;
      if (best.line.input[j] > best.line.input[i] - rounding || (!forward && !all)) continue;
      const bool full =
          best.line.held[i] == load.memory_limit || open[a.stage] + reserve[a.stage] >= load.memory_limit;
      if (forward && full) continue;
      if (--runs < 0) return false;
      if (move_ahead(load, best, i, j)) return true;
    }
    return false;
  };
  while ((moved || !all) && runs > 0) {
    all = !moved;
    moved = false;
    for (int r = 0; r < load.pp; ++r) {
      std::fill(open.begin(), open.end(), 0);
      for (int i = best.order.begin[r]; i < best.order.begin[r + 1]; ++i) {
        if (best.line.idle[i] > rounding && pull_into(i, best.order.begin[r + 1])) moved = true;
        const action a = best.order.actions[i];
        open[a.stage] += a.kind == action_kind::F ? 1 : -1;
      }
    }
  }
}

/// Moves random passes by a few places, in `runs` trials. It continues from the result unless that is worse
/// by more than a threshold, which falls to zero. So it can leave orders that no single move improves.
/// Source: threshold accepting, Dueck and Scheuer 1990, J. Comput. Phys. 90.
constexpr void anneal(const pipeline_load& load, candidate& best, int runs) {
  const double passes = static_cast<double>(best.order.actions.size());
  auto score = [&](const candidate& c) { return c.line.makespan + 0.1 * c.line.sum_of_ends / passes; };
  unsigned state = 1;
  auto random = [&](int below) {
    state = state * 1664525u + 1013904223u;
    return static_cast<int>((state >> 8) % static_cast<unsigned>(below));
  };
  candidate now = best;
  double now_score = score(now);
  for (int n = 0, tries = 0; n < runs && tries < 8 * runs; ++tries) {
    const int rank = random(load.pp), begin = best.order.begin[rank],
              length = best.order.begin[rank + 1] - begin;
    const int i = random(length - 1), j = std::min(length - 1, i + 1 + random(3));
    const bool ahead = random(2) == 0;  // the last one moves to the front, or the first one to the end
    candidate trial = now;
    action* const row = trial.order.actions.data() + begin;
    const action moved = row[ahead ? j : i];
    bool keeps_order = true;
    for (int k = ahead ? i : i + 1; k < j + !ahead; ++k)
      if (row[k].stage == moved.stage && (row[k].kind == moved.kind || row[k].microbatch == moved.microbatch))
        keeps_order = false;
    if (!keeps_order) continue;
    ++n;
    std::rotate(row + i, row + (ahead ? j : i + 1), row + j + 1);
    trial.run(load);
    const double threshold = 0.02 * load.cost.forward * (runs - n) / runs * random(256) / 128;
    if (const double s = score(trial); s <= now_score + threshold) {
      if (trial.line.better_than(best.line)) best = trial;
      now = std::move(trial);
      now_score = s;
    }
  }
}

/// The load of a schedule, with the placement of its rank_of_stage(stage, pp).
constexpr pipeline_load load_of(const auto& schedule, int pp, const costs& cost, int memory_limit) {
  pipeline_load load{
      .pp = pp, .microbatches = schedule.microbatches, .cost = cost, .memory_limit = memory_limit};
  for (int s = 0; s < pp * schedule.stages_per_rank; ++s)
    load.rank_of_stage.push_back(schedule.rank_of_stage(s, pp));
  return load;
}

/// A lower bound of the makespan for every order of the load.
/// Units: of the costs.
constexpr double lower_bound(const pipeline_load& load) {
  action_table ideal;
  ideal.microbatches = load.microbatches;
  ideal.begin.assign(static_cast<std::size_t>(load.pp) + 1, 0);
  ideal.rank_of_stage = load.rank_of_stage;
  return lower_bound(ideal, load.cost);
}

/// The best few candidates for a load, best first.
class shortlist {
 public:
  constexpr shortlist(const pipeline_load& load, std::size_t length) : load_(load), length_(length) {}

  constexpr void add(const action_table& order) {
    for (const bool eagerly : {true, false}) {
      if (load_.whole_backward && !eagerly) continue;  // there are no W
      candidate c{order, eagerly, {}};
      c.run(load_);
      insert(std::move(c));
    }
  }
  constexpr void add(const action_pattern& p) { add(unroll(load_, p)); }

  /// Tightens the candidates in turn, in at most `runs` trials, until none can be better.
  constexpr void tighten_all(int& runs) {
    const std::vector<candidate> seeds = list_;
    for (const candidate& seed : seeds)
      for (const double share : {1.0, 0.75, 0.5, 0.0}) {
        if (runs <= 0 || is_best()) return;
        candidate c = seed;
        tighten(load_, c, reserve(load_, share), runs);
        insert(std::move(c));
      }
  }

  /// Tightens the candidates, then anneals the best, in `runs` trials or until none can be better.
  constexpr void improve(int runs) {
    int tightening = runs / 8;
    tighten_all(tightening);
    if (list_.empty() || is_best()) return;
    candidate c = list_.front();
    anneal(load_, c, runs - runs / 8);
    insert(std::move(c));
  }

  /// The table of the best candidate.
  /// Errors: an empty table if no candidate runs within the limit.
  constexpr action_table table() const {
    if (list_.empty()) return {};
    return filled(load_, list_.front().order, list_.front().eagerly);
  }

 private:
  constexpr bool is_best() const { return list_.front().line.makespan <= lower_bound(load_) * (1 + 1e-12); }

  constexpr void insert(candidate c) {
    if (c.line.makespan == std::numeric_limits<double>::infinity()) return;
    auto at = list_.begin();
    while (at != list_.end() && !c.line.better_than(at->line)) ++at;
    if (at == list_.end() && list_.size() == length_) return;
    // equally good: probably the same
    if (at != list_.begin() && !(at - 1)->line.better_than(c.line)) return;
    list_.insert(at, std::move(c));
    if (list_.size() > length_) list_.pop_back();
  }

  const pipeline_load& load_;
  std::size_t length_;
  std::vector<candidate> list_;
};

/// True if all passes cost the same, and messages cost nothing.
constexpr bool even(const costs& c) {
  return c.forward == c.input_grad && c.forward == c.weight_grad && c.send == 0 && c.stage.empty() &&
         c.again.empty();
}

/// The list schedule of a pattern. If all passes cost the same, it is built for few microbatches and its
/// repeating part is extended, because a compiler cannot afford more. With other costs it may not repeat, so
/// it is then one of several tightened candidates.
/// Errors: an empty table if the limit is below stages_per_rank.
constexpr action_table greedy(const pipeline_load& load, const action_pattern& like,
                              const leeway& allowed = {}) {
  const costs& c = load.cost;
  const int m = load.microbatches, in_flight = load.memory_limit / load.stages_per_rank();
  // Found by measurement. With little memory the schedule repeats sooner.
  const int enough = std::min(3 * std::max(load.pp, in_flight) / 2, 2 * in_flight) + 4;
  if (even(c)) {
    for (const int few : {enough, 2 * enough}) {
      if (few >= m) break;
      pipeline_load part = load;
      part.microbatches = few;
      std::vector<double> begins;
      const action_table shorter = list_schedule(part, place(part, like), allowed, &begins);
      action_table t = repeat_steady_state(shorter, begins, m);
      if (!t.actions.empty()) return t;
    }
    return list_schedule(load, place(load, like), allowed);
  }
  pipeline_load unit = load;
  unit.cost = {};
  shortlist list(load, 8);
  list.add(like);
  const pipeline_load* const timings[]{&load, &unit};
  for (const pipeline_load* const timed : timings)
    for (const leeway& each :
         {allowed, leeway{.steady = true, .patient = true}, leeway{.reserve = 0.5, .backwards = true}})
      list.add(order_of(list_schedule(*timed, place(*timed, like), each), load.backward()));
  int runs = 20;  // more runs gain about one per cent, and cost a compiler seconds
  list.tighten_all(runs);
  action_table best = list_schedule(load, place(load, like), allowed), tightened = list.table();
  if (tightened.actions.empty() || total(best, c).makespan < total(tightened, c).makespan) return best;
  return tightened;
}

}  // namespace rankc
