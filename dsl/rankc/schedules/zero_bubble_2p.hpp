// SPDX-License-Identifier: Apache-2.0
// Zero bubble with twice 1F1B's memory (ZB-2p): no rank waits between its first and its last action.
// Source: Qi et al. 2023, arXiv:2401.10241, section 3.1.
#pragma once
#include <rankc/schedules/builder/greedy.hpp>
#include <rankc/schedule/placement.hpp>

namespace rankc::schedules {

/// A rank holds activations of 2 * pp microbatches. With F = I = W no rank waits between its first and its
/// last action.
struct zero_bubble_2p {
  int microbatches = 1;
  planned_costs cost = {};
  static constexpr std::string_view name = "zero_bubble_2p";
  static constexpr int stages_per_rank = 1;
  constexpr int rank_of_stage(int stage, int) const { return stage; }
  constexpr action_table table(int pp) const { return greedy(load_of(*this, pp, cost, 2 * pp), {{0, 0}}); }
};

}  // namespace rankc::schedules
