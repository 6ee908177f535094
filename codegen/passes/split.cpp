// SPDX-License-Identifier: Apache-2.0
// Backward in two halves, by dataflow: what the gradient of the input needs, then the rest. Later passes keep the order,
// and what the second half reads of the first is kept in the slot.
#include <algorithm>
#include <set>

#include "calls.hpp"

namespace rankc::codegen {

void split_backward(value_program& p) {
  std::set<int> needed;  // values
  if (p.dx >= 0) needed.insert(p.dx);
  const auto is_needed = [&](const operand& o) { return o.where == space::temp && needed.count(o.index) > 0; };
  for (auto c = p.backward.rbegin(); c != p.backward.rend(); ++c) {
    c->call.for_weights = std::none_of(c->writes.begin(), c->writes.end(), is_needed);
    if (c->call.for_weights) continue;
    for (const operand& o : c->reads)
      if (o.where == space::temp) needed.insert(o.index);
  }
  std::stable_partition(p.backward.begin(), p.backward.end(), [](const value_call& c) { return !c.call.for_weights; });
}

}  // namespace rankc::codegen
