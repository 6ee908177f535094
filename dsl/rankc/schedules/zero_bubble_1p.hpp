// SPDX-License-Identifier: Apache-2.0
// Zero bubble with 1F1B's memory (ZB-1p): backward is split into I and W, and W runs where a rank would wait.
// Source: Qi et al. 2023, arXiv:2401.10241, section 3.1.
#pragma once
#include <rankc/schedules/builder/greedy.hpp>
#include <rankc/schedule/placement.hpp>

namespace rankc::schedules {

/// A rank holds activations of pp microbatches, as in 1F1B. With F = I = W the bubble is a third of 1F1B's.
struct zero_bubble_1p {
  int microbatches = 1;
  planned_costs cost = {};
  static constexpr std::string_view name = "zero_bubble_1p";
  static constexpr int stages_per_rank = 1;
  constexpr int rank_of_stage(int stage, int) const { return stage; }
  constexpr action_table table(int pp) const { return greedy(load_of(*this, pp, cost, pp), {{0, 0}}); }
};

}  // namespace rankc::schedules
