// SPDX-License-Identifier: Apache-2.0
// GPipe: all forwards, then all backwards.
// Source: Huang et al. 2019, arXiv:1811.06965.
#pragma once
#include <rankc/schedule/actions.hpp>

namespace rankc::schedules {

/// All forwards of a step, then all backwards. The bubble is (pp - 1) / (microbatches + pp - 1). Every rank
/// holds the activations of all microbatches.
struct gpipe {
  int microbatches = 1;
  static constexpr std::string_view name = "gpipe";
  static constexpr int stages_per_rank = 1;
  constexpr int rank_of_stage(int stage, int) const { return stage; }
  constexpr void actions(int, int rank, auto emit) const {
    for (int m = 0; m < microbatches; ++m) emit(action{action_kind::F, rank, m});
    for (int m = 0; m < microbatches; ++m) emit(action{action_kind::B, rank, m});
  }
};

}  // namespace rankc::schedules
