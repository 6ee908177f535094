// SPDX-License-Identifier: Apache-2.0
// Zero bubble in a V (ZBV), the order written by hand. Source: Qi et al. 2023, arXiv:2401.10241, section 6,
// as in PyTorch and d9d.
#pragma once
#include <rankc/schedule/actions.hpp>
#include <rankc/schedule/placement.hpp>

namespace rankc::schedules {

/// Two stages on a rank, placed in a V, and split backwards: for F = I = W no rank waits between its first
/// and its last action, with the activations of pp microbatches, as in 1F1B. Fewer than 2 * pp - 1
/// microbatches take the same order with what there is not left out.
struct zero_bubble_v {
  int microbatches = 1;
  static constexpr std::string_view name = "zero_bubble_v";
  static constexpr int stages_per_rank = 2;
  constexpr int rank_of_stage(int stage, int pp) const { return v_placement(stage, pp); }
  constexpr void actions(int pp, int rank, auto emit) const {
    const int stage[2]{rank, 2 * pp - 1 - rank};  // on the way down, on the way up
    const int n = microbatches < 2 * pp - 1 ? 2 * pp - 1 : microbatches;
    int f[2]{}, i[2]{}, w[2]{};  // how many of each so far, those left out included
    auto put = [&](action_kind kind, int(&done)[2], int way) {
      if (const int m = done[way]++; m < microbatches) emit(action{kind, stage[way], m});
    };
    using enum action_kind;
    // Warm-up: until the first microbatch is back, then until its backward is.
    for (int k = 2 * (pp - rank) - 1; k > 0; --k) put(F, f, 0);
    for (int k = rank; k > 0; --k) {
      put(F, f, 1);
      put(F, f, 0);
    }
    for (int k = pp - rank; k > 0; --k) {
      put(F, f, 1);
      put(I, i, 1);
      put(W, w, 1);
    }
    while (f[1] < n) {
      if (f[0] < n) put(F, f, 0);
      put(I, i, 0);
      put(W, w, 0);
      put(F, f, 1);
      put(I, i, 1);
      put(W, w, 1);
    }
    // Cool-down: gradients of inputs go first, those of weights fill the waits.
    for (int k = rank; k > 0; --k) {
      put(I, i, 0);
      put(I, i, 1);
    }
    for (int k = pp - rank; k > 0; --k) {
      put(I, i, 0);
      put(W, w, 0);
    }
    while (w[1] < n) put(W, w, 1);
    while (w[0] < n) put(W, w, 0);
  }
};

}  // namespace rankc::schedules
