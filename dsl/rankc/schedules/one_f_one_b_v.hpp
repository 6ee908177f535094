// SPDX-License-Identifier: Apache-2.0
// 1F1B in a V: two stages on a rank, backward as a whole, with two thirds of 1F1B's memory.
// Source: Qi et al. 2024, arXiv:2405.15362, appendix.
#pragma once
#include <rankc/schedules/builder/greedy.hpp>
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
    return greedy(load, waiting(pp));
  }

 private:
  /// If no pass waits longer than it must, each backward waits 3 forwards on one hop between ranks in three,
  /// on its way to the last rank and on its way back. Of four hops where the first stages' F wait 2 on the
  /// middle ones, a backward waits 6 there and 2 back. So the last rank holds more, and the others are done
  /// sooner: the limit has room for as many fours as leave a multiple of three hops. They are at the first
  /// ranks, which send on at once at the end.
  static constexpr pattern waiting(int pp) {
    pattern p{{0, 0, 0, 0}};
    p.waits.assign(static_cast<std::size_t>(4 * pp), 0);
    const int fours = (pp - 1) % 3;
    for (int rank = std::min(pp - 3, 4 * fours - 2); rank > 0; rank -= 4)
      p.waits[rank] = p.waits[rank + 1] = p.waits[2 * pp + rank] = 2;
    return p;
  }
};

}  // namespace rankc::schedules
