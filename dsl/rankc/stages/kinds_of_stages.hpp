// SPDX-License-Identifier: Apache-2.0
// The layers of a plan's stages.
#pragma once
#include <rankc/stages/plan_data.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace rankc {

/// The stage of a layer that is not repeated, by the number of repeated layers before it. With none before
/// it, it is the first stage; with all before it, the last; otherwise the stage of the layer before it.
/// Shapes: blocks_of_stage (stages).
constexpr std::size_t stage_of_alone(int blocks_before, std::span<const int> blocks_of_stage) {
  std::size_t stage = 0, last = blocks_of_stage.size() - 1;
  int end = blocks_of_stage[0], all = 0;
  for (int n : blocks_of_stage) all += n;
  if (blocks_before == 0 || blocks_before == all) return blocks_before == 0 ? 0 : last;
  while (blocks_before > end) end += blocks_of_stage[++stage];
  return stage;
}

/// The kind of each run.
/// Shapes: (runs), indices of the plan's kinds.
constexpr std::vector<int> kinds_of_runs(const plan_data& p) {
  std::vector<int> kinds;
  for (const layer_run& run : p.runs) kinds.push_back(run.kind);
  return kinds;
}

/// The kinds of each stage's layers, in order.
/// Shapes: (stages), then (layers of the stage), indices of the plan's kinds.
constexpr std::vector<std::vector<int>> kinds_of_stages(const plan_data& p) {
  std::vector<std::vector<int>> stages(p.blocks_of_stage.size(), std::vector<int>{});
  std::size_t stage = 0;
  int before = 0, end = p.blocks_of_stage[0];
  for (const layer_run& run : p.runs)
    for (int i = 0; i < run.count; ++i) {
      const bool repeated = p.kinds[static_cast<std::size_t>(run.kind)].repeated;
      if (repeated)
        for (++before; before > end;) end += p.blocks_of_stage[++stage];
      stages[repeated ? stage : stage_of_alone(before, p.blocks_of_stage)].push_back(run.kind);
    }
  return stages;
}

}  // namespace rankc
