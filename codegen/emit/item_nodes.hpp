// SPDX-License-Identifier: Apache-2.0
// The nodes of an item that computes, in the order of its calls: those of a training step, or of evaluation
// if the plan does not train.
#pragma once
#include <rankc/codegen/lowered.hpp>

#include "../passes/passes.hpp"

namespace rankc::codegen {

/// Visits nodes with their layer's body and call: those of the item's layer, or of all layers of its stage.
void each_node(const lowered& l, const pipeline_rank& r, const item& i, auto visit) {
  const stage_plan& s = r.stages[static_cast<std::size_t>(i.stage)];
  const bool is_layer = i.what == item_kind::forward_layer || i.what == item_kind::backward_layer;
  const int first = is_layer ? i.layer : 0, last = is_layer ? i.layer + 1 : static_cast<int>(s.layers.size());
  for (int layer = first; layer < last; ++layer) {
    const body& b = l.bodies[static_cast<std::size_t>(s.layers[static_cast<std::size_t>(layer)].kind)];
    for (const phase p : phases_of(s, i, layer))
      for (const node& n : b.calls(p))
        if (n.runs_in(l.trains())) visit(b, s.calls[static_cast<int>(p)][static_cast<std::size_t>(layer)], n);
  }
}

}  // namespace rankc::codegen
