// SPDX-License-Identifier: Apache-2.0
// Backward in two halves, by dataflow: what the gradient of the input needs, then the rest. Later passes keep the order,
// and what the second half reads of the first is kept in the slot.
#include <set>

#include "node.hpp"

namespace rankc::codegen {

void split_backward(layer_program& p) {
  std::set<int> needed;  // values
  if (p.dx >= 0) needed.insert(p.dx);
  const auto is_needed = [&](const operand& o) { return o.where == space::temp && needed.count(o.index) > 0; };
  for (auto n = p.backward.rbegin(); n != p.backward.rend(); ++n) {
    n->for_weights = true;
    n->each_write([&](const port_use& w) { n->for_weights &= !is_needed(w.at); });
    if (n->for_weights) continue;
    n->each_read([&](const port_use& r) {
      if (r.at.where == space::temp) needed.insert(r.at.index);
    });
  }
  std::stable_partition(p.backward.begin(), p.backward.end(), [](const node& n) { return !n.for_weights; });
}

}  // namespace rankc::codegen
