// SPDX-License-Identifier: Apache-2.0
// Which layers a plan's stages have.
#pragma once
#include <rankc/stages/plan_data.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace rankc {

/// The stage of a layer that stands alone, by the repeated layers before it: the first stage where there are
/// none, the last where these are all, else that of the one before it.
/// Shapes: blocks_of_stage (stages).
constexpr std::size_t stage_of_alone(int blocks_before, std::span<const int> blocks_of_stage) {
  std::size_t stage = 0, last = blocks_of_stage.size() - 1;
  int end = blocks_of_stage[0], all = 0;
  for (int n : blocks_of_stage) all += n;
  if (blocks_before == 0 || blocks_before == all) return blocks_before == 0 ? 0 : last;
  while (blocks_before > end) end += blocks_of_stage[++stage];
  return stage;
}

/// The kinds of each stage's layers, in order.
/// Shapes: (stages), then (layers of the stage), indices of the plan's kinds.
constexpr std::vector<std::vector<int>> kinds_of_stages(const plan_data& p) {
  std::vector<std::vector<int>> stages(p.blocks_of_stage.size(), std::vector<int>{});
  std::size_t stage = 0;
  int before = 0, end = p.blocks_of_stage[0];
  for (std::size_t k = 0; k < p.kinds.size(); ++k)
    for (int i = 0; i < p.kinds[k].count; ++i) {
      if (p.kinds[k].repeated)
        for (++before; before > end;) end += p.blocks_of_stage[++stage];
      stages[p.kinds[k].repeated ? stage : stage_of_alone(before, p.blocks_of_stage)].push_back(
          static_cast<int>(k));
    }
  return stages;
}

}  // namespace rankc
