// SPDX-License-Identifier: Apache-2.0
// u = f(..); sum = before + u   ->   before += f(..), by a kernel that can add to its output.
#include <rankc/ops.hpp>

#include "node.hpp"

namespace rankc::codegen {

namespace {

/// The port of a node that can add; null where none can.
port_use* adding_port(node& n) {
  for (std::size_t p = 0; p < n.ports.size(); ++p)
    if (n.row->ports[p].adds) return &n.ports[p];
  return nullptr;
}

/// The earlier gradient, the part and their sum are one value from here on.
void merge(layer_program& p, const operand& part, const operand& after, const operand& before) {
  if (p.named[after.index] && !p.named[before.index]) {
    std::swap(p.names[after.index], p.names[before.index]);
    p.named[before.index] = true;
  }
  for (int& a : p.alias)
    if (a == after.index || a == part.index) a = before.index;
  if (p.dx == after.index) p.dx = before.index;
  for (node& n : p.backward)
    for (port_use& u : n.ports)
      if (u == after || u == part) u.at = before;
}

}  // namespace

void add_in_place(layer_program& p) {
  nodes& list = p.backward;
  for (std::size_t i = 0; i + 1 < list.size(); ++i) {
    const port_use* made = adding_port(list[i]);
    if (!made) continue;
    const operand part = made->at;
    const auto user = std::find_if(list.begin() + static_cast<std::ptrdiff_t>(i) + 1, list.end(), [&](const node& n) { return n.mentions(part); });
    // The first use of the part must be the addition, and the only one.
    if (user == list.end() || !user->is(ops::add)) continue;
    const auto j = static_cast<std::size_t>(user - list.begin());
    const operand a = list[j]["a"].at, b = list[j]["b"].at, before = a == part ? b : a, after = list[j]["y"].at;
    bool only_here = before.index != p.dy && before != part;
    for (std::size_t k = 0; k < list.size(); ++k) {
      if (k != i && k != j && list[k].mentions(part)) only_here = false;
      if (k >= i && k != j && list[k].mentions(before)) only_here = false;
    }
    if (!only_here) continue;
    list[i].accumulate = accumulation::add;
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(j));
    merge(p, part, after, before);
  }
}

}  // namespace rankc::codegen
