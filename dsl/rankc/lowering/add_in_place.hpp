// SPDX-License-Identifier: Apache-2.0
// Replaces `u = f(..); sum = before + u` by `before += f(..)` if the kernel of f can add to its output.
#pragma once
#include <rankc/ops/elementwise.hpp>
#include <rankc/lowering/node.hpp>

namespace rankc::lowering {

namespace detail {

/// The output that a node could add to; -1 if none of its ports can.
constexpr int adding_value(const auto& n) {
  for (std::size_t p = 0; p < n.ports.size(); ++p)
    if (n.row->ports[p].adds) return n.ports[p].at.value;
  return -1;
}

/// The index of the addition that is the only use of `part`, the output of node i. Its other operand must not
/// be touched from node i on. -1 if there is none.
constexpr int find_addition(const layer_program& p, std::size_t i, int part) {
  const nodes& list = p.backward;
  std::size_t j = i + 1;
  while (j < list.size() && !list[j].mentions(part)) ++j;
  if (j == list.size() || !list[j].is(ops::add)) return -1;
  const int a = list[j]["a"].at.value, b = list[j]["b"].at.value, before = a == part ? b : a;
  if (before == part || p.values[before].where == space::dy) return -1;
  for (std::size_t k = 0; k < list.size(); ++k)
    if (k != j && ((k != i && list[k].mentions(part)) || (k >= i && list[k].mentions(before)))) return -1;
  return static_cast<int>(j);
}

}  // namespace detail

/// If an output is only added to another value, its kernel adds it directly, if it can.
constexpr void add_in_place(layer_program& p) {
  nodes& list = p.backward;
  for (std::size_t i = 0; i + 1 < list.size(); ++i) {
    const int part = detail::adding_value(list[i]);
    const int j = part < 0 ? -1 : detail::find_addition(p, i, part);
    if (j < 0) continue;
    const int a = list[j]["a"].at.value, before = a == part ? list[j]["b"].at.value : a,
              after = list[j]["y"].at.value;
    list[i].accumulate = accumulation::add;
    list.erase(list.begin() + j);
    // From here on the earlier gradient, the part and their sum are one value.
    if (p.values[after].where == space::dx) {
      p.values[before].where = space::dx;
      p.values[before].offset = p.values[after].offset;
      p.values[after].where = space::temp;
    }
    if (p.values[after].name.of_model && !p.values[before].name.of_model)
      p.values[before].name = p.values[after].name;
    for (node& n : list)
      for (port_use& u : n.ports)
        if (u.at.value == after || u.at.value == part) u.at.value = before;
  }
}

}  // namespace rankc::lowering
