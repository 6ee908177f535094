// SPDX-License-Identifier: Apache-2.0
// Puts backwards together again that a schedule splits for nothing.
#pragma once
#include <rankc/schedule/actions.hpp>

namespace rankc {

/// The same actions with each I that its own W follows directly made a B: one walk over the stage, and nothing kept
/// between its halves.
constexpr action_table fuse_backward(action_table t) {
  std::size_t to = 0, from = 0;
  for (std::size_t rank = 0; rank + 1 < t.begin.size(); ++rank) {
    const std::size_t end = static_cast<std::size_t>(t.begin[rank + 1]);
    t.begin[rank] = static_cast<int>(to);
    for (; from < end; ++from) {
      action a = t.actions[from];
      if (a.kind == action_kind::I && !a.overlaps_next && from + 1 < end) {
        const action& next = t.actions[from + 1];
        if (next.kind == action_kind::W && next.stage == a.stage && next.microbatch == a.microbatch) {
          a = {action_kind::B, a.stage, a.microbatch, next.overlaps_next};
          ++from;
        }
      }
      t.actions[to++] = a;
    }
  }
  t.begin.back() = static_cast<int>(to);
  t.actions.resize(to);
  return t;
}

}  // namespace rankc
