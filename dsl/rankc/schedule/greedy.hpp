// SPDX-License-Identifier: Apache-2.0
// Greedy schedules under costs and a memory limit: a repeated pattern, its waits filled with W, then its ramps up and
// down tightened. Sources: Qi et al. 2023, arXiv:2401.10241, section 3.1; Qi et al. 2024, arXiv:2405.15362.
#pragma once
#include <rankc/schedule/pattern.hpp>

namespace rankc {

/// The costs that a schedule type is built for: costs without lists, so that it can be a template argument.
/// Units: any, the same for all.
struct planned_costs {
  double forward = 1, input_grad = 1, weight_grad = 1, send = 0;
  constexpr operator costs() const {
    return {.forward = forward, .input_grad = input_grad, .weight_grad = weight_grad, .send = send};
  }
};

/// An order of F and I (or B), what it was filled like, and how that went.
struct candidate {
  action_table order;
  bool eagerly = true;
  timeline line;
  constexpr void run(const pipeline_load& load) { line = fill(load, order, eagerly); }
};

/// Pull passes that are ready into waits before them, each time that this makes things better, in at most `runs` trials.
/// An F leaves room in memory for `reserve` forwards of each later stage of its rank: what fills memory too early on the
/// way down is missing on the way up.
constexpr void tighten(const pipeline_load& load, candidate& best, int reserve, int& runs) {
  constexpr double rounding = 1e-9;
  const int v = load.stages_per_rank();
  std::vector<char> seen(static_cast<std::size_t>(2 * load.stages()));
  for (bool moved = true; moved && runs > 0;) {
    moved = false;
    for (int r = 0; r < load.pp; ++r)
      for (int i = best.order.begin[r]; i < best.order.begin[r + 1]; ++i) {
        if (best.line.idle[i] <= rounding) continue;
        // The next pass of each stage and direction is a choice, where it does not overtake its own F.
        std::fill(seen.begin(), seen.end(), 0);
        int kinds = 2 * v;
        for (int j = i; j < best.order.begin[r + 1] && kinds > 0; ++j) {
          const action a = best.order.actions[j];
          const bool forward = a.kind == action_kind::F;
          char& known = seen[(forward ? 0 : load.stages()) + a.stage];
          if (known) continue;
          known = 1;
          --kinds;
          if (j == i || best.line.input[j] > best.line.input[i] - rounding) continue;
          if (forward && best.line.held[i] + 1 + reserve * (v - 1 - a.stage / load.pp) > load.memory_limit) continue;
          if (--runs < 0) return;
          candidate trial = best;
          action* const row = trial.order.actions.data();
          std::rotate(row + i, row + j, row + j + 1);
          trial.run(load);
          if (!trial.line.better_than(best.line)) continue;
          best = std::move(trial);
          moved = true;
          break;
        }
      }
  }
}

/// The load of a schedule whose stages are where `rank_of_stage(stage, pp)` says.
constexpr pipeline_load load_of(const auto& schedule, int pp, const costs& cost, int memory_limit) {
  pipeline_load load{.pp = pp, .microbatches = schedule.microbatches, .cost = cost, .memory_limit = memory_limit};
  for (int s = 0; s < pp * schedule.stages_per_rank; ++s) load.rank_of_stage.push_back(schedule.rank_of_stage(s, pp));
  return load;
}

/// The best of the patterns, tightened in at most `runs` trials.
/// Errors: an empty table where the limit is less than every pattern needs to run.
constexpr action_table greedy(const pipeline_load& load, const std::vector<pattern>& patterns, int runs) {
  candidate best;
  std::vector<candidate> seeds;
  for (const pattern& p : patterns)
    for (const bool eagerly : {true, false}) {
      if (load.whole_backward && !eagerly) continue;
      candidate c{repeat(load, p), eagerly, {}};
      c.run(load);
      if (c.line.better_than(best.line)) best = c;
      seeds.push_back(std::move(c));
    }
  action_table ideal;
  ideal.microbatches = load.microbatches;
  ideal.begin.assign(static_cast<std::size_t>(load.pp) + 1, 0);
  ideal.rank_of_stage = load.rank_of_stage;
  const double bound = lower_bound(ideal, load.cost) * (1 + 1e-12);
  std::sort(seeds.begin(), seeds.end(), [](const candidate& a, const candidate& b) { return a.line.better_than(b.line); });
  for (const candidate& seed : seeds)
    for (int reserve = 0; reserve < 4 && runs > 0 && best.line.makespan > bound; ++reserve) {
      candidate c = seed;
      tighten(load, c, reserve, runs);
      if (c.line.better_than(best.line)) best = std::move(c);
    }
  return best.line.makespan < std::numeric_limits<double>::infinity() ? filled(load, best.order, best.eagerly) : action_table{};
}

}  // namespace rankc
