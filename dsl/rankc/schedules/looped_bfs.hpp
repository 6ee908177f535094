// SPDX-License-Identifier: Apache-2.0
// Breadth-first looped pipeline.
// Source: Lamy-Poirier 2022, arXiv:2211.05953, section 4.
#pragma once
#include <rankc/schedule/actions.hpp>
#include <rankc/schedule/placement.hpp>

namespace rankc::schedules {

/// All microbatches pass through a rank's first stage, then through its next one; backwards run in the
/// opposite order. With one stage per rank it is GPipe whose backwards start with the last microbatch. A rank
/// uses a stage's weights in one uninterrupted period for each direction, so sharded weights are gathered
/// once in it. The bubble is (pp - 1) / (stages_per_rank * microbatches + pp - 1). Every rank holds the
/// activations of all microbatches.
struct looped_bfs {
  int microbatches = 1, stages_per_rank = 2;
  bool inference = false;
  static constexpr std::string_view name = "looped_bfs";
  constexpr int rank_of_stage(int stage, int pp) const { return loop_placement(stage, pp); }
  constexpr void actions(int pp, int rank, auto emit) const {
    for (int n = 0; n < stages_per_rank; ++n)
      for (int m = 0; m < microbatches; ++m) emit(action{action_kind::F, n * pp + rank, m});
    if (inference) return;
    for (int n = stages_per_rank; n-- > 0;)
      for (int m = microbatches; m-- > 0;) emit(action{action_kind::B, n * pp + rank, m});
  }
};

}  // namespace rankc::schedules
