// SPDX-License-Identifier: Apache-2.0
// Interleaved 1F1B. Source: Narayanan et al. 2021, arXiv:2104.04473, section 2.2.2.
#pragma once
#include <rankc/schedule/actions.hpp>
#include <rankc/schedule/placement.hpp>
#include <rankc/schedule/rounds.hpp>

namespace rankc::schedules {

/// 1F1B with several stages on a rank, which microbatches pass in rounds. Bubble (pp - 1) / (stages_per_rank
/// * microbatches + pp - 1). The published orders are of counts that divide into m / pp rounds; here any
/// count runs. With one stage per rank it warms up twice as long as one_f_one_b, for the same bubble: take
/// that one.
struct interleaved_one_f_one_b {
  int microbatches = 1, stages_per_rank = 2;
  static constexpr std::string_view name = "interleaved_one_f_one_b";
  constexpr int rank_of_stage(int stage, int pp) const { return loop_placement(stage, pp); }
  constexpr void actions(int pp, int rank, auto emit) const {
    const rounds in(microbatches, pp);
    const int total = stages_per_rank * microbatches;
    const int warm_up = (stages_per_rank - 1) * in.size(0) + 2 * (pp - 1 - rank);
    round_walk f{in, stages_per_rank}, b = f;
    for (int i = 0; i < total + warm_up; ++i) {
      if (i < total) {
        emit(action{action_kind::F, f.nth_stage * pp + rank, f.microbatch});
        f.advance();
      }
      if (i >= warm_up) {
        emit(action{action_kind::B, (stages_per_rank - 1 - b.nth_stage) * pp + rank, b.microbatch});
        b.advance();
      }
    }
  }
};

}  // namespace rankc::schedules
