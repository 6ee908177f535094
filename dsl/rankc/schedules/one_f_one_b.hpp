// SPDX-License-Identifier: Apache-2.0
// 1F1B (PipeDream-flush).
// Source: Narayanan et al. 2021, arXiv:2104.04473, section 2.2.1.
#pragma once
#include <rankc/schedule/actions.hpp>

namespace rankc::schedules {

/// A warm-up of forwards, then backwards and forwards alternate. The bubble is GPipe's, but a rank holds
/// activations of at most pp microbatches. Any number of microbatches runs, even fewer than pp.
struct one_f_one_b {
  int microbatches = 1;
  static constexpr std::string_view name = "one_f_one_b";
  static constexpr int stages_per_rank = 1;
  constexpr int rank_of_stage(int stage, int) const { return stage; }
  constexpr void actions(int pp, int rank, auto emit) const {
    const int warm_up = microbatches < pp - rank ? microbatches : pp - rank;
    int f = 0, b = 0;
    while (f < warm_up) emit(action{action_kind::F, rank, f++});
    while (b < microbatches) {
      emit(action{action_kind::B, rank, b++});
      if (f < microbatches) emit(action{action_kind::F, rank, f++});
    }
  }
};

}  // namespace rankc::schedules
