// SPDX-License-Identifier: Apache-2.0
// Zero bubble in a V (ZBV), the order written by hand. Source: Qi et al. 2023, arXiv:2401.10241, section 6, as in
// PyTorch and d9d.
#pragma once
#include <rankc/schedule/actions.hpp>
#include <rankc/schedule/placement.hpp>

namespace rankc::schedules {

/// Two stages on a rank, placed in a V, and split backwards: for F = I = W no rank waits between its first and its
/// last action, with the activations of pp microbatches, as in 1F1B. Fewer than 2 * pp - 1 microbatches take the same
/// order with what there is not left out.
struct zero_bubble_v {
  int microbatches = 1;
  static constexpr std::string_view name = "zero_bubble_v";
  static constexpr int stages_per_rank = 2;
  constexpr int rank_of_stage(int stage, int pp) const { return v_placement(stage, pp); }
  constexpr void actions(int pp, int rank, auto emit) const {
    const int stage[2]{rank, 2 * pp - 1 - rank};  // on the way down, on the way up
    const int n = microbatches < 2 * pp - 1 ? 2 * pp - 1 : microbatches;
    int f[2]{}, i[2]{}, w[2]{};
    auto put = [&](action_kind kind, int way, int m) {
      if (m < microbatches) emit(action{kind, stage[way], m});
    };
    auto forward = [&](int way) { put(action_kind::F, way, f[way]++); };
    auto inputs = [&](int way) { put(action_kind::I, way, i[way]++); };
    auto weights = [&](int way) { put(action_kind::W, way, w[way]++); };
    auto backward = [&](int way) {
      inputs(way);
      weights(way);
    };
    // Warm-up: until the first microbatch is back, then until its backward is.
    for (int k = 2 * (pp - rank) - 1; k > 0; --k) forward(0);
    for (int k = rank; k > 0; --k) {
      forward(1);
      forward(0);
    }
    for (int k = pp - rank; k > 0; --k) {
      forward(1);
      backward(1);
    }
    while (f[1] < n) {
      if (f[0] < n) forward(0);
      backward(0);
      forward(1);
      backward(1);
    }
    // Cool-down: gradients of inputs go first, those of weights fill the waits.
    for (int k = rank; k > 0; --k) {
      inputs(0);
      inputs(1);
    }
    for (int k = pp - rank; k > 0; --k) backward(0);
    while (w[1] < n) weights(1);
    while (w[0] < n) weights(0);
  }
};

}  // namespace rankc::schedules
