// SPDX-License-Identifier: Apache-2.0
// The placements of a pipeline's stages that the published schedules use.
#pragma once

namespace rankc {

/// Loop: stage s is on rank s % pp.
constexpr int loop_placement(int stage, int pp) { return stage % pp; }

/// V: down the ranks and up again. The first and the last of 2 * pp stages are on rank 0, and the two stages
/// at each turn are on one rank.
constexpr int v_placement(int stage, int pp) {
  const int at = stage % (2 * pp);
  return at < pp ? at : 2 * pp - 1 - at;
}

}  // namespace rankc
