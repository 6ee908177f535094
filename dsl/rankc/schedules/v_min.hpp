// SPDX-License-Identifier: Apache-2.0
// V-Min: two stages on a rank, placed in a V, with the least memory that repeats without waits: a third of
// 1F1B's.
// Source: Qi et al. 2024, arXiv:2405.15362, section 3.
#pragma once
#include <rankc/schedules/builder/greedy.hpp>
#include <rankc/schedule/placement.hpp>

namespace rankc::schedules {

/// The activations of (pp + 2) / 3 microbatches of the rank's two stages, rounded up, against 1F1B's pp.
struct v_min {
  int microbatches = 1;
  planned_costs cost = {};
  static constexpr std::string_view name = "v_min";
  static constexpr int stages_per_rank = 2;
  constexpr int rank_of_stage(int stage, int pp) const { return v_placement(stage, pp); }
  constexpr action_table table(int pp) const {
    const int limit = 2 * ((pp + 4) / 3);
    return greedy(load_of(*this, pp, cost, limit), {{0, 0, 0, 0}}, {.reserve = 0.75});
  }
};

}  // namespace rankc::schedules
