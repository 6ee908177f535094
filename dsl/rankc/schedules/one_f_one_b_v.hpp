// SPDX-License-Identifier: Apache-2.0
// 1F1B in a V: two stages per rank, a backward that is not split, and two thirds of 1F1B's memory.
// Source: Qi et al. 2024, arXiv:2405.15362, appendix.
#pragma once
#include <rankc/schedules/builder/greedy.hpp>
#include <rankc/schedule/placement.hpp>

namespace rankc::schedules {

/// A rank holds activations of about 2 * pp / 3 microbatches of its two stages. The bubble is at most 1F1B's.
struct one_f_one_b_v {
  int microbatches = 1;
  planned_costs cost = {};
  static constexpr std::string_view name = "one_f_one_b_v";
  static constexpr int stages_per_rank = 2;
  constexpr int rank_of_stage(int stage, int pp) const { return v_placement(stage, pp); }
  constexpr action_table table(int pp) const {
    pipeline_load load = load_of(*this, pp, cost, 2 * (2 * pp / 3 + 1));
    load.whole_backward = true;
    return greedy(load, waiting(pp));
  }

 private:
  /// Waits that are added to single passes. Without them a backward waits 3 forwards on every third hop
  /// between ranks, both on its way to the last rank and on its way back. If the first stages' F wait 2
  /// forwards on the two middle hops of four, a backward waits 6 forwards on its way to the last rank and 2
  /// on its way back. So the last rank holds more activations, and the other ranks finish sooner. The memory
  /// limit has room for (pp - 1) % 3 such groups of four, which leave a multiple of three hops. They are at
  /// the first ranks, which send without delay at the end.
  static constexpr action_pattern waiting(int pp) {
    action_pattern p{{0, 0, 0, 0}};
    p.waits.assign(static_cast<std::size_t>(4 * pp), 0);
    const int fours = (pp - 1) % 3;
    for (int rank = std::min(pp - 3, 4 * fours - 2); rank > 0; rank -= 4)
      p.waits[rank] = p.waits[rank + 1] = p.waits[2 * pp + rank] = 2;
    return p;
  }
};

}  // namespace rankc::schedules
