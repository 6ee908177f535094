// SPDX-License-Identifier: Apache-2.0
// Zero bubble in a V (ZBV), with an explicit order.
// Source: Qi et al. 2023, arXiv:2401.10241, section 6, as in PyTorch and d9d.
#pragma once
#include <rankc/schedule/actions.hpp>
#include <rankc/schedule/placement.hpp>

namespace rankc::schedules {

/// Two stages per rank in a V, with a split backward. With F = I = W no rank waits between its first and its
/// last action, and it holds activations of pp microbatches, as in 1F1B. With fewer than 2 * pp - 1
/// microbatches the order is that of 2 * pp - 1, and the missing ones are skipped.
struct zero_bubble_v {
  int microbatches = 1;
  static constexpr std::string_view name = "zero_bubble_v";
  static constexpr int stages_per_rank = 2;
  constexpr int rank_of_stage(int stage, int pp) const { return v_placement(stage, pp); }
  constexpr void actions(int pp, int rank, auto emit) const {
    const int stage[2]{rank, 2 * pp - 1 - rank};  // on the way down, on the way up
    const int n = microbatches < 2 * pp - 1 ? 2 * pp - 1 : microbatches;
    int f[2]{}, i[2]{}, w[2]{};  // number of each so far, including skipped ones
    auto put = [&](action_kind kind, int(&done)[2], int way) {
      if (const int m = done[way]++; m < microbatches) emit(action{kind, stage[way], m});
    };
    using enum action_kind;
    // Warm-up: until the first microbatch returns to the rank, then until its backward does.
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
    // Cool-down: input gradients run first, and weight gradients fill the waits.
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
