// SPDX-License-Identifier: Apache-2.0
// Splits backward in two halves by dataflow: first the nodes that the input's gradient needs, then the rest.
// Later passes keep the order. Values that the second half reads of the first are stored per microbatch.
#pragma once
#include <rankc/lowering/node.hpp>

namespace rankc::lowering {

constexpr void split_backward(layer_program& p) {
  std::vector<char> needed(p.values.size(), 0);
  const auto passes = [&](int v) {  // the values that nodes pass to each other
    const space where = p.values[v].where;
    return where <= space::temp;
  };
  for (std::size_t v = 0; v < needed.size(); ++v) needed[v] = p.values[v].where == space::dx;
  for (auto n = p.backward.rbegin(); n != p.backward.rend(); ++n) {
    n->for_weights = true;
    n->each_write([&](const port_use& w) { n->for_weights &= !needed[w.at.value]; });
    if (n->for_weights) continue;
    n->each_read([&](const port_use& r) { needed[r.at.value] |= passes(r.at.value); });
  }
  nodes halves;
  for (const bool for_weights : {false, true})
    for (node& n : p.backward)
      if (n.row && n.for_weights == for_weights) {
        halves.push_back(std::move(n));
        n.row = nullptr;
      }
  p.backward = std::move(halves);
}

/// Finishes backward: empties it if the layer is not trained, and counts the recomputed nodes at its start
/// and the nodes of its first half.
constexpr void settle_backward(layer_program& p, const layer_setting& s) {
  if (!s.trains) p.backward.clear();
  p.in_halves = s.splits_backward;
  while (p.repeated < p.backward.size() && p.backward[p.repeated].again &&
         !p.backward[p.repeated].for_weights)
    ++p.repeated;
  while (p.first_half < p.backward.size() && !p.backward[p.first_half].for_weights) ++p.first_half;
}

}  // namespace rankc::lowering
