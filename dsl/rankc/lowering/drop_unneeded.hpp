// SPDX-License-Identifier: Apache-2.0
// Drops backward nodes that no needed gradient depends on. Gradients of trained parameters are needed. The
// input's gradient is needed if a layer before this one is trained.
#pragma once
#include <rankc/lowering/node.hpp>

namespace rankc::lowering {

constexpr void drop_unneeded(layer_program& p, const layer_setting& s) {
  std::vector<char> needed(p.values.size(), 0);
  for (std::size_t v = 0; v < needed.size(); ++v)
    needed[v] = p.values[v].where == space::gradient || (s.gives_dx && p.values[v].where == space::dx);
  nodes kept;
  for (std::size_t i = p.backward.size(); i-- > 0;) {
    node& n = p.backward[i];
    bool is_needed = false;
    n.each_write([&](const port_use& u) { is_needed |= needed[u.at.value]; });
    if (!is_needed) continue;
    n.each_read([&](const port_use& u) { needed[u.at.value] = 1; });
    kept.push_back(std::move(n));
  }
  p.backward.clear();
  for (std::size_t i = kept.size(); i-- > 0;) p.backward.push_back(std::move(kept[i]));
}

}  // namespace rankc::lowering
