// SPDX-License-Identifier: Apache-2.0
// V-Half: two stages per rank in a V, with about half of 1F1B's memory.
// Source: Qi et al. 2024, arXiv:2405.15362, section 3.
#pragma once
#include <rankc/schedules/builder/greedy.hpp>
#include <rankc/schedule/placement.hpp>

namespace rankc::schedules {

/// A rank holds activations of (pp + 1) / 2 microbatches of its two stages, rounded up; 1F1B holds pp. The
/// bubble is about half of 1F1B's.
struct v_half {
  int microbatches = 1;
  planned_costs cost = {};
  static constexpr std::string_view name = "v_half";
  static constexpr int stages_per_rank = 2;
  constexpr int rank_of_stage(int stage, int pp) const { return v_placement(stage, pp); }
  constexpr action_table table(int pp) const {
    const int limit = 2 * ((pp + 2) / 2);
    const double turn = pp % 2 == 0 && pp > 2;  // otherwise F and I of the last rank's stages would collide
    return greedy(load_of(*this, pp, cost, limit), {{0, 1, 0, 0}, turn});
  }
};

}  // namespace rankc::schedules
