// SPDX-License-Identifier: Apache-2.0
// Interleaved zero bubble (ZB1P with several stages per rank).
// Source: Qi et al. 2023, arXiv:2401.10241, section 2.1, in the interleaved form of PyTorch and d9d.
#pragma once
#include <rankc/schedule/actions.hpp>
#include <rankc/schedule/placement.hpp>
#include <rankc/schedule/rounds.hpp>

namespace rankc::schedules {

/// Interleaved 1F1B with a split backward. W runs `rank` backwards later than its I, so input gradients reach
/// the earlier ranks without delay. With F = I = W the bubble is (pp - 1) / (3 * stages_per_rank *
/// microbatches + pp - 1). A rank holds activations of about pp microbatches.
struct interleaved_zero_bubble {
  int microbatches = 1, stages_per_rank = 2;
  static constexpr std::string_view name = "interleaved_zero_bubble";
  constexpr int rank_of_stage(int stage, int pp) const { return loop_placement(stage, pp); }
  constexpr void actions(int pp, int rank, auto emit) const {
    const rounds in(microbatches, pp);
    const int total = stages_per_rank * microbatches;
    const int warm_up = (stages_per_rank - 1) * in.size(0) + pp - 1 - rank;
    round_walk f{in, stages_per_rank}, i = f, w = f;
    auto backward = [&](action_kind kind, round_walk& b) {
      emit(action{kind, (stages_per_rank - 1 - b.nth_stage) * pp + rank, b.microbatch});
      b.advance();
    };
    for (int n = 0; n < total + warm_up + rank; ++n) {
      if (n < total) {
        emit(action{action_kind::F, f.nth_stage * pp + rank, f.microbatch});
        f.advance();
      }
      if (n >= warm_up && n < total + warm_up) backward(action_kind::I, i);
      if (n >= warm_up + rank) backward(action_kind::W, w);
    }
  }
};

}  // namespace rankc::schedules
