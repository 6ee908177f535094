// SPDX-License-Identifier: Apache-2.0
// Which layers a plan's stages have.
#pragma once
#include <cstddef>
#include <vector>

namespace rankc {

/// The kinds of each stage's layers, in order: what comes before the repeated layers is on the first stage, what comes
/// after on the last.
/// Shapes: (stages), then (layers of the stage), indices of the plan's kinds.
constexpr std::vector<std::vector<int>> kinds_of_stages(const auto& p) {
  std::vector<std::vector<int>> stages(p.blocks_of_stage.size(), std::vector<int>{});
  std::size_t stage = 0;
  int on_stage = 0;
  for (std::size_t k = 0; k < p.kinds.size(); ++k)
    for (int i = 0; i < p.kinds[k].count; ++i) {
      if (p.kinds[k].repeated && on_stage == p.blocks_of_stage[stage]) ++stage, on_stage = 0;
      on_stage += p.kinds[k].repeated;
      stages[stage].push_back(static_cast<int>(k));
    }
  return stages;
}

}  // namespace rankc
