// SPDX-License-Identifier: Apache-2.0
// The walk over the actions of all ranks. Proofs, timing and filling of schedules use it.
#pragma once
#include <vector>

namespace rankc::detail {

/// Each rank in turn runs as far as it can, until none moves. `run(rank, next)` runs a rank's actions from
/// `next` on and returns the first that waits, or the end of its actions.
/// Shapes: begin (ranks + 1), as in action_table; the result (ranks), the actions that wait at the end.
constexpr std::vector<int> walk(const std::vector<int>& begin, auto run) {
  std::vector<int> next(begin.begin(), begin.end() - 1);
  const int ranks = static_cast<int>(next.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (int r = 0; r < ranks; ++r) {
      const int reached = run(r, next[r]);
      moved |= reached != next[r];
      next[r] = reached;
    }
  }
  return next;
}

}  // namespace rankc::detail
