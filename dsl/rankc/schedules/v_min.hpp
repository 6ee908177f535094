// SPDX-License-Identifier: Apache-2.0
// V-Min: two stages per rank in a V, with a third of 1F1B's memory. This is the least with which the pattern
// repeats without waits.
// Source: Qi et al. 2024, arXiv:2405.15362, section 3.
#pragma once
#include <rankc/schedules/builder/greedy.hpp>
#include <rankc/schedule/placement.hpp>

namespace rankc::schedules {

/// A rank holds activations of (pp + 2) / 3 microbatches of its two stages, rounded up; 1F1B holds pp.
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
