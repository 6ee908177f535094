// SPDX-License-Identifier: Apache-2.0
// Questions that the fusing passes ask about the calls of a layer.
#pragma once
#include "kernels.hpp"

#include <algorithm>

namespace rankc::codegen {

using calls = std::vector<value_call>;

inline bool holds(const std::vector<operand>& list, const operand& o) { return std::find(list.begin(), list.end(), o) != list.end(); }

/// Whether a call touches a value, whichever part of it.
inline bool mentions(const value_call& c, const operand& o) {
  const auto same = [&](const operand& x) { return x.where == o.where && x.index == o.index; };
  return std::any_of(c.reads.begin(), c.reads.end(), same) || std::any_of(c.writes.begin(), c.writes.end(), same);
}

/// Number of calls, forward and backward, that touch a value.
inline int mentions(const value_program& p, const operand& o) {
  int n = 0;
  for (const calls* list : {&p.forward, &p.backward})
    for (const value_call& c : *list) n += mentions(c, o);
  return n;
}

/// Whether a value belongs to the layer alone: not handed in, and not handed on.
inline bool is_inner(const value_program& p, const operand& o) {
  return o.where == space::temp && o.index != p.x && o.index != p.y && o.index != p.dy && o.index != p.dx;
}

/// Whether a value lives only between `n` calls, and can go when they become one.
inline bool is_only_in(const value_program& p, const operand& o, int n) { return is_inner(p, o) && mentions(p, o) == n; }

/// The first call after `from` that reads a value; its index, or -1.
inline int reader(const calls& list, int from, const operand& o) {
  for (int i = from + 1; i < static_cast<int>(list.size()); ++i)
    if (holds(list[i].reads, o)) return i;
  return -1;
}

inline void erase(calls& list, int i) { list.erase(list.begin() + i); }

}  // namespace rankc::codegen
