// SPDX-License-Identifier: Apache-2.0
// The gradient reductions of a step, which run concurrently with computation.
#pragma once
#include <rankc/schedule/actions.hpp>

#include <vector>

namespace rankc::detail {

/// The reductions that ranks have reached. Each rank runs its reductions one after another. The reduction of
/// a stage on two ranks is one collective, which begins when both ranks have reached it.
/// Units: times as the costs.
struct reductions {
  struct reached {
    int stage, action;  // index into the table's actions
    double at, takes;
  };
  const action_table& table;
  std::vector<std::vector<reached>> of_rank;  // by rank, in its order
  std::vector<std::size_t> have_run;          // the number of reductions that each rank has run
  std::vector<double> free_at;                // by rank: the time at which it can run the next one
  int left;                                   // stages whose gradients are not reduced yet
  double end = 0;                             // end of all reductions so far

  constexpr explicit reductions(const action_table& t)
      : table(t),
        of_rank(static_cast<std::size_t>(t.ranks())),
        have_run(of_rank.size(), 0),
        free_at(of_rank.size(), 0),
        left(t.stages()) {}

  constexpr const reached* head(int rank) const {
    return have_run[rank] < of_rank[rank].size() ? &of_rank[rank][have_run[rank]] : nullptr;
  }
  constexpr const reached* find(int rank, int stage) const {
    for (const reached& x : of_rank[rank])
      if (x.stage == stage) return &x;
    return nullptr;
  }
  constexpr bool has_run(int rank, int stage) const {
    const reached* const x = find(rank, stage);
    return x && x < of_rank[rank].data() + have_run[rank];
  }

  /// Called when a rank reaches a reduction. Runs every reduction that can run now, and calls `ran(action,
  /// begin, end)` for each rank that has the stage.
  constexpr void reach(int rank, const reached& x, auto ran) {
    of_rank[rank].push_back(x);
    run(rank, ran);
  }

 private:
  constexpr void run(int rank, auto ran) {
    while (const reached* const x = head(rank)) {
      const int other = table.shares_stage(rank, x->stage);
      const reached* const same = head(other);
      if (!same || same->stage != x->stage) return;
      double begin = x->at > same->at ? x->at : same->at;
      for (const int r : {rank, other})
        if (free_at[r] > begin) begin = free_at[r];
      const double done = begin + x->takes;
      free_at[rank] = free_at[other] = done;
      if (done > end) end = done;
      --left;
      ++have_run[rank];
      ran(x->action, begin, done);
      if (other == rank) continue;
      ++have_run[other];
      ran(same->action, begin, done);
      run(other, ran);
    }
  }
};

}  // namespace rankc::detail
