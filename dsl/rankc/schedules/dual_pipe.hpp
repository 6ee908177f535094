// SPDX-License-Identifier: Apache-2.0
// DualPipe, the bidirectional pipeline.
// Source: DeepSeek-AI 2024, DeepSeek-V3 report, arXiv:2412.19437, section 3.2.1.
#pragma once
#include <rankc/schedule/dual_pipe_row.hpp>

namespace rankc::schedules {

/// Half of the microbatches pass through the ranks in order and half in reverse order, so every stage is on
/// two ranks. A forward of one half overlaps a backward of the other. A rank holds activations of pp + 1
/// microbatches and twice the weights.
/// Errors: RC312.
struct dual_pipe {
  int microbatches = 2;
  bool inference = false;
  static constexpr std::string_view name = "dual_pipe";
  static constexpr int stages_per_rank = 2;
  constexpr int stages(int pp) const { return pp; }
  constexpr int rank_of_stage(int stage, int) const { return stage; }
  constexpr int reversed_rank_of_stage(int stage, int pp) const { return pp - 1 - stage; }
  constexpr int reversed_from() const { return microbatches / 2; }

  constexpr void check(report& out, int pp) const {
    if (pp % 2 != 0) {
      sentence& s = refuse(out, 312);
      s << "pp=" << pp << " is odd; dual_pipe pairs each rank with its mirror, so take pp=";
      if (pp > 1) s << pp - 1 << " or ";
      s << pp + 1 << ", or dual_pipe_v, which runs on any number of ranks";
    }
    if (microbatches % 2 != 0) {
      sentence& s = refuse(out, 312);
      s << "microbatches=" << microbatches << " is odd; dual_pipe sends half of them each way, so take ";
      if (microbatches > 1) s << microbatches - 1 << " or ";
      s << microbatches + 1 << ", or dual_pipe_v, which runs any number";
    }
  }

  constexpr void actions(int pp, int rank, auto emit) const {
    const int half = microbatches / 2, mirror = pp - 1 - rank;
    const detail::dual_pipe_part onward{rank, 0, half}, reversed{mirror, half, half};
    if (rank < mirror) detail::dual_pipe_row(pp / 2, rank, onward, reversed, inference, emit);
    else detail::dual_pipe_row(pp / 2, mirror, reversed, onward, inference, emit);
  }
};

}  // namespace rankc::schedules
