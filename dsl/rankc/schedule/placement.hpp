// SPDX-License-Identifier: Apache-2.0
// Where a pipeline's stages are: the placements that the published schedules use.
#pragma once

namespace rankc {

/// In a loop: stage s is on rank s % pp.
constexpr int loop_placement(int stage, int pp) { return stage % pp; }

/// In a V, down the ranks and up again, so that the first and the last stage are on rank 0 and the stages at
/// each turn are neighbours on one rank.
constexpr int v_placement(int stage, int pp) {
  const int at = stage % (2 * pp);
  return at < pp ? at : 2 * pp - 1 - at;
}

}  // namespace rankc
