// SPDX-License-Identifier: Apache-2.0
// Interleaved 1F1B in smaller rounds (group-interleaved), which need less memory.
// Source: Qi et al. 2024, arXiv:2405.15362; the order of Sea AI Lab's code.
#pragma once
#include <rankc/schedule/actions.hpp>
#include <rankc/schedule/placement.hpp>

#include <algorithm>

namespace rankc::schedules {

/// Interleaved 1F1B with rounds of `group` microbatches. I runs before W, so the input gradient is sent
/// first. A rank holds activations of at most (stages_per_rank - 1) * group + max(pp - rank, pp - 2 * group)
/// microbatches of a stage. With fewer, ranks with small groups would wait for each other. A last round with
/// fewer microbatches keeps the order of a full round and skips the missing ones.
struct group_interleaved {
  int microbatches = 1, stages_per_rank = 2;
  int group = 0;  // microbatches of a round; 0: pp
  static constexpr std::string_view name = "group_interleaved";
  constexpr int rank_of_stage(int stage, int pp) const { return loop_placement(stage, pp); }
  constexpr void actions(int pp, int rank, auto emit) const {
    const int size = group > 0 ? group : pp, round = size * stages_per_rank;
    const int total = (microbatches + size - 1) / size * round;
    const int warm_up = (stages_per_rank - 1) * size + std::max(pp - rank, pp - 2 * size);
    auto put = [&](action_kind kind, int nth) {  // the nth forward or backward
      const int turn = nth % round / size, m = nth / round * size + nth % size;
      const int stage = (kind == action_kind::F ? turn : stages_per_rank - 1 - turn) * pp + rank;
      if (m < microbatches) emit(action{kind, stage, m});
    };
    for (int n = 0; n < total + warm_up; ++n) {
      if (n >= warm_up) {
        put(action_kind::I, n - warm_up);
        put(action_kind::W, n - warm_up);
      }
      if (n < total) put(action_kind::F, n);
    }
  }
};

}  // namespace rankc::schedules
