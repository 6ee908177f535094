// SPDX-License-Identifier: Apache-2.0
// Zero bubble in a V (ZBV), built for given costs.
// Source: Qi et al. 2023, arXiv:2401.10241, section 6; Qi et al. 2024, arXiv:2405.15362, section 3.
#pragma once
#include <rankc/schedules/builder/greedy.hpp>
#include <rankc/schedule/placement.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

namespace rankc::schedules {

/// The placement and the memory of zero_bubble_v, with an order that is built for the costs and the number of
/// microbatches.
struct zero_bubble_v_greedy {
  int microbatches = 1;
  planned_costs cost = {};
  static constexpr std::string_view name = "zero_bubble_v_greedy";
  static constexpr int stages_per_rank = 2;
  constexpr int rank_of_stage(int stage, int pp) const { return v_placement(stage, pp); }
  constexpr action_table table(int pp) const {
    // With equal costs the order of zero_bubble_v is as short as possible, and it compiles faster.
    if (even(cost) && microbatches >= 2 * pp - 1) return collect(zero_bubble_v{microbatches}, pp);
    return greedy(load_of(*this, pp, cost, 2 * pp), {{3, 0, 0, 0}});
  }
};

}  // namespace rankc::schedules
