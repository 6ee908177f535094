// SPDX-License-Identifier: Apache-2.0
// DualPipeV, DualPipe cut in half.
// Source: Qi et al. 2025, huggingface.co/blog/ufotalent/cut-in-half; github.com/deepseek-ai/DualPipe.
#pragma once
#include <rankc/schedule/dual_pipe_row.hpp>
#include <rankc/schedule/placement.hpp>

namespace rankc::schedules {

/// DualPipe in a V: a forward of one of a rank's two stages overlaps a backward of the other, so each one's
/// communication is hidden behind the other's computation. A rank holds activations of pp + 1/2 microbatches.
struct dual_pipe_v {
  int microbatches = 1;
  bool inference = false;
  static constexpr std::string_view name = "dual_pipe_v";
  static constexpr int stages_per_rank = 2;
  constexpr int rank_of_stage(int stage, int pp) const { return v_placement(stage, pp); }
  constexpr void actions(int pp, int rank, auto emit) const {
    detail::dual_pipe_row(pp, rank, {rank, 0, microbatches}, {2 * pp - 1 - rank, 0, microbatches}, inference,
                          emit);
  }
};

}  // namespace rankc::schedules
