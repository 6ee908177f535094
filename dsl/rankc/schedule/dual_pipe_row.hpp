// SPDX-License-Identifier: Apache-2.0
// The actions of a rank in DualPipe and DualPipeV. In both a rank has two stages, one near the start of its
// microbatches' path and one near the end, and it overlaps a forward of one stage with a backward of the
// other. In DualPipeV the same microbatches pass through both stages. In DualPipe each half of the
// microbatches passes through one of them.
#pragma once
#include <rankc/schedule/actions.hpp>

namespace rankc::detail {

/// A stage of the rank and the microbatches that pass through it on this rank.
struct dual_pipe_part {
  int stage, first_microbatch, microbatches;
};

/// Emits the actions of a rank in a V of `ranks` ranks. `rank` is its distance from the rank where the
/// microbatches of its first part enter. With fewer than 2 * ranks microbatches the order stays the same and
/// the missing ones are skipped.
/// Source: DeepSeek-V3 report, arXiv:2412.19437, figure 5, and the eight steps of
/// github.com/deepseek-ai/DualPipe.
constexpr void dual_pipe_row(int ranks, int rank, dual_pipe_part near, dual_pipe_part far, bool inference,
                             auto emit) {
  const dual_pipe_part parts[2]{near, far};
  const int below = ranks - 1 - rank;  // hops to the turn of the V
  int n = 2 * ranks;
  for (const dual_pipe_part& p : parts) n = n < p.microbatches ? p.microbatches : n;
  int f[2]{}, b[2]{};         // forwards and backwards so far, including skipped ones
  std::vector<action> split;  // I actions whose W comes later, in the same order
  std::size_t w = 0;
  auto exists = [&](int part, int m) { return m < parts[part].microbatches; };
  auto put = [&](action_kind kind, int part, int m, bool overlaps_next) {
    if (exists(part, m) && !(inference && kind != action_kind::F))
      emit(action{kind, parts[part].stage, parts[part].first_microbatch + m, overlaps_next});
  };
  auto forward = [&](int part) { put(action_kind::F, part, f[part]++, false); };
  auto backward = [&](int part) { put(action_kind::B, part, b[part]++, false); };
  auto inputs = [&](int part) {
    split.push_back({action_kind::W, part, b[part]});
    put(action_kind::I, part, b[part]++, false);
  };
  auto weights = [&] {
    put(action_kind::W, split[w].stage, split[w].microbatch, false);
    ++w;
  };
  auto both = [&](int of_forward, int of_backward) {
    put(action_kind::F, of_forward, f[of_forward]++, !inference && exists(of_backward, b[of_backward]));
    backward(of_backward);
  };

  for (int k = 0; k < 2 * below; ++k) forward(0);
  for (int k = 0; k <= rank; ++k) {
    forward(0);
    forward(1);
  }
  for (int k = 0; k < below; ++k) {
    inputs(1);
    weights();
    forward(1);
  }
  for (int k = 0; k <= n - 2 * ranks + rank; ++k) {
    if (k == 0 && below == 0) {  // at the turn the backward needs the forward just before it
      forward(0);
      backward(1);
    } else {
      both(0, 1);
    }
    both(1, 0);
  }
  for (int k = 0; k < below; ++k) {
    backward(1);
    both(1, 0);
  }
  for (int k = 0; k < 2 * (rank + 1); ++k) k <= rank ? backward(1 - k % 2) : inputs(1 - k % 2);
  for (int k = 0; k < below; ++k) {
    weights();
    inputs(0);
  }
  for (int k = 0; k <= rank; ++k) weights();
}

}  // namespace rankc::detail
