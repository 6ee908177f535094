// SPDX-License-Identifier: Apache-2.0
// 1F1B in a V: two stages on a rank, backward as a whole, with two thirds of 1F1B's memory.
// Source: Qi et al. 2024, arXiv:2405.15362, appendix.
#pragma once
#include <rankc/schedule/greedy.hpp>
#include <rankc/schedule/placement.hpp>

namespace rankc::schedules {

/// The activations of about 2 * pp / 3 microbatches of the rank's two stages, and at most 1F1B's bubble.
struct one_f_one_b_v {
  int microbatches = 1;
  planned_costs cost = {};
  static constexpr std::string_view name = "one_f_one_b_v";
  static constexpr int stages_per_rank = 2;
  constexpr int rank_of_stage(int stage, int pp) const { return v_placement(stage, pp); }
  constexpr action_table table(int pp) const {
    pipeline_load load = load_of(*this, pp, cost, 2 * (2 * pp / 3 + 1));
    load.whole_backward = true;
    return greedy(load, {{0, 0, 0, 0}});
  }
};

}  // namespace rankc::schedules
