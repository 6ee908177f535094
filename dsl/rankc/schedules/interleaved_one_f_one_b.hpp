// SPDX-License-Identifier: Apache-2.0
// Interleaved 1F1B.
// Source: Narayanan et al. 2021, arXiv:2104.04473, section 2.2.2.
#pragma once
#include <rankc/schedule/actions.hpp>
#include <rankc/schedule/placement.hpp>
#include <rankc/schedule/rounds.hpp>

namespace rankc::schedules {

/// 1F1B with several stages per rank; microbatches pass through them in rounds. The bubble is (pp - 1) /
/// (stages_per_rank * microbatches + pp - 1). The published schedule requires m % (m / pp) == 0 for m
/// microbatches; this one accepts any m. With one stage per rank its warm-up is twice as long as that of
/// one_f_one_b and the bubble is the same, so use one_f_one_b there.
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
