// SPDX-License-Identifier: Apache-2.0
// A schedule for tests, of any placement: every rank does the first thing that it can, gradients before forwards and
// what nobody waits for last.
#pragma once
#include <rankc/schedule/actions.hpp>

#include <string_view>
#include <vector>

namespace programs {

using namespace rankc;

/// Loop: stage s on rank s % pp. V: down the ranks and up again. With `split` backward is I and W.
struct greedy {
  int microbatches = 1, stages_per_rank = 2;
  bool v = false, split = false;
  static constexpr std::string_view name = "greedy";

  constexpr int rank_of_stage(int stage, int pp) const {
    const int lap = stage / pp, at = stage % pp;
    return v && lap % 2 == 1 ? pp - 1 - at : at;
  }
  action_table table(int pp) const {
    action_table t;
    t.microbatches = microbatches;
    const int stages = pp * stages_per_rank;
    for (int s = 0; s < stages; ++s) t.rank_of_stage.push_back(rank_of_stage(s, pp));
    std::vector<std::vector<int>> forward(stages, std::vector<int>(microbatches, never)), backward = forward, weights = forward;
    std::vector<std::vector<action>> order(pp);
    std::vector<int> held(pp, 0), free_at(pp, 0);
    for (int now = 0, left = 2 * stages * microbatches; left > 0; ++now)
      for (int r = 0; r < pp; ++r) {
        if (free_at[r] > now) continue;
        const auto ready = [&](action_kind k, int s, int m) {
          if (k == action_kind::F)
            return forward[s][m] == never && held[r] < 2 * stages && (s == 0 || forward[s - 1][m] <= now);
          if (k == action_kind::W) return weights[s][m] == never && backward[s][m] <= now;
          return backward[s][m] == never && forward[s][m] <= now && (s + 1 == stages || backward[s + 1][m] <= now);
        };
        const auto run = [&](action_kind k, int s, int m) {
          order[r].push_back({k, s, m});
          free_at[r] = now + (k == action_kind::B ? 2 : 1);
          (k == action_kind::F ? forward : k == action_kind::W ? weights : backward)[s][m] = free_at[r];
          held[r] += k == action_kind::F ? 1 : k == action_kind::I ? 0 : -1;
          left -= k != action_kind::I;
        };
        const auto run_first = [&](action_kind k) {
          for (int m = 0; m < microbatches; ++m)
            for (int s = stages - 1; s >= 0; --s)
              if (t.rank_of_stage[s] == r && ready(k, s, m)) return run(k, s, m), true;
          return false;
        };
        if (run_first(split ? action_kind::I : action_kind::B) || run_first(action_kind::F)) continue;
        if (split) run_first(action_kind::W);
      }
    for (const auto& actions : order) {
      t.begin.push_back(static_cast<int>(t.actions.size()));
      t.actions.insert(t.actions.end(), actions.begin(), actions.end());
    }
    t.begin.push_back(static_cast<int>(t.actions.size()));
    return t;
  }

 private:
  static constexpr int never = 1 << 30;
};

}  // namespace programs
