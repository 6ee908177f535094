// SPDX-License-Identifier: Apache-2.0
// Assigns storage to a layer's values from their lifetimes: layer inputs and outputs, saved values,
// temporaries. Also finds values that can be computed in place, sets the offset of each value, and removes
// unused ones.
#pragma once
#include <rankc/lowering/intervals.hpp>
#include <rankc/lowering/node.hpp>

#include <utility>

namespace rankc::lowering {

/// Pairs (output, input) of a node's ports: the output may be written to the memory of the input.
constexpr std::vector<std::pair<int, int>> may_replace(const auto& n) {
  std::vector<std::pair<int, int>> pairs;
  for (std::size_t p = 0; p < n.ports.size(); ++p)
    for (std::string_view name : n.row->ports[p].may_replace)
      if (!name.empty()) pairs.emplace_back(static_cast<int>(p), n.row->find(name));
  return pairs;
}

namespace detail {

constexpr bool is_scratch(const value& v) { return v.holds == element_kind::bytes; }

/// The op that waits for a message.
constexpr std::size_t arrival(const nodes& list, std::size_t message) {
  std::size_t i = message + 1;
  while (i + 1 < list.size() && !list[i].joins) ++i;
  return i;
}
/// Finds the first and the last node that touch each value. Buffers of a ring message are live until the node
/// that waits for it. Buffers of a conversion that is overlapped by rows are live in both nodes of the pair.
constexpr void find_lives(layer_program& p) {
  const auto walk = [&](const nodes& list, node_range value::* of) {
    const auto touch = [&](int v, std::size_t i) {
      node_range& r = p.values[v].*of;
      const int at = static_cast<int>(i);
      r = r.any() ? node_range{std::min(r.first, at), std::max(r.last, at)} : node_range{at, at};
    };
    for (std::size_t i = 0; i < list.size(); ++i)
      for (const port_use& u : list[i].ports) {
        touch(u.at.value, i);
        if (list[i].is_beside()) touch(u.at.value, arrival(list, i));
        if (list[i].row->communicates()) touch(u.at.value, find_partner(list, i));
        if (u.run >= 0)
          for (int more : p.runs[u.run]) touch(more, i);
      }
  };
  walk(p.forward, &value::forward);
  walk(p.backward, &value::backward);
}

/// Values that backward reads from forward are saved, and so are those that its second half reads from the
/// first.
constexpr void find_saved(layer_program& p) {
  for (value& v : p.values) {
    const bool both_ways = v.forward.any() && v.backward.any();
    if (v.where != space::temp || is_scratch(v)) continue;
    if (both_ways) v.where = space::saved;
    else if (p.crosses_halves(v)) v.where = space::halfway;
  }
}

/// Replaces a value by another, whose lifetime then covers both.
constexpr void put_into(layer_program& p, int from, int into) {
  const auto join = [&](nodes& list, node_range value::* lives) {
    node_range &gone = p.values[from].*lives, &all = p.values[into].*lives;
    if (!gone.any()) return;
    for (int i = gone.first; i <= gone.last; ++i)
      for (port_use& u : list[i].ports)
        if (u.at.value == from) u.at.value = into;
    all = all.any() ? node_range{std::min(all.first, gone.first), std::max(all.last, gone.last)} : gone;
    gone = {};
  };
  join(p.forward, &value::forward);
  join(p.backward, &value::backward);
}

/// Lets a node overwrite an input that nothing needs afterwards.
constexpr void share_in_place(layer_program& p, const nodes& list, node_range value::* lives) {
  const bool forward = &list == &p.forward;
  for (std::size_t i = 0; i < list.size(); ++i)
    for (const auto& [out, in] : may_replace(list[i])) {
      const int to = list[i].ports[out].at.value, from = list[i].ports[in].at.value,
                here = static_cast<int>(i);
      const value &a = p.values[to], &b = p.values[from];
      if (to == from || (b.*lives).last != here || (a.*lives).first != here || a.bytes != b.bytes) continue;
      if (b.where == space::temp && a.where <= space::temp) {
        put_into(p, from, to);  // the input is made in the memory of the output
      } else if ((b.where == space::saved || b.where == space::halfway) && !forward &&
                 (a.where == space::temp || a.where == space::halfway)) {
        put_into(p, to, from);  // the output overwrites a saved value at its last use
      } else {
        continue;
      }
      break;
    }
}

/// Removes unused values. Values stored by the layer itself come first, then scratch in the order of the
/// nodes, then the rest.
constexpr void compact(layer_program& p) {
  std::vector<int> number(p.values.size(), -1);
  std::vector<value> kept;
  kept.reserve(p.values.size());
  const auto keep = [&](std::size_t v) {
    number[v] = static_cast<int>(kept.size());
    kept.push_back(p.values[v]);
  };
  const auto is_own = [&](const value& v) {
    return v.where == space::saved || v.where == space::halfway || v.where == space::temp;
  };
  const auto is_used = [](const value& v) { return v.forward.any() || v.backward.any(); };
  for (std::size_t v = 0; v < number.size(); ++v)
    if (is_used(p.values[v]) && is_own(p.values[v]) && !is_scratch(p.values[v])) keep(v);
  for (const nodes* list : {&p.forward, &p.backward})
    for (const node& n : *list)
      for (const port_use& u : n.ports)
        if (number[u.at.value] < 0 && is_scratch(p.values[u.at.value]))
          keep(static_cast<std::size_t>(u.at.value));
  for (std::size_t v = 0; v < number.size(); ++v)
    if (number[v] < 0 && is_used(p.values[v])) keep(v);
  for (nodes* list : {&p.forward, &p.backward})
    for (node& n : *list)
      for (port_use& u : n.ports) u.at.value = number[u.at.value];
  for (std::vector<int>& run : p.runs)
    for (int& v : run) v = number[v];
  p.values = std::move(kept);
}

/// Places kept values one after another.
constexpr std::size_t place_kept(layer_program& p, space where) {
  std::size_t at = 0;
  for (value& v : p.values)
    if (v.where == where) {
      at += aligned(v.bytes);
      v.offset = at - aligned(v.bytes);
    }
  return at;
}

/// Places the temporaries of a list, in the order of their first use. Returns the size of the workspace.
constexpr std::size_t place_temporaries(layer_program& p, const nodes& list, node_range value::* lives) {
  std::vector<int> order;
  std::vector<lifetime> placed;
  std::vector<char> known(p.values.size(), 0);
  for (const node& n : list)
    for (const bool written : {true, false})
      each_operand(p, n, written, [&](const operand& o) {
        const value& v = p.values[o.at.value];
        if (v.where != space::temp || known[o.at.value]) return;
        known[o.at.value] = 1;
        order.push_back(o.at.value);
        placed.push_back({(v.*lives).first, (v.*lives).last, v.bytes});
      });
  const std::size_t bytes = place_intervals(placed);
  for (std::size_t i = 0; i < order.size(); ++i) p.values[order[i]].offset = placed[i].offset;
  return bytes;
}

}  // namespace detail

constexpr void place_values(layer_program& p) {
  detail::find_lives(p);
  detail::find_saved(p);
  detail::share_in_place(p, p.forward, &value::forward);
  detail::share_in_place(p, p.backward, &value::backward);
  for (const value& v : p.values) {
    if (v.where == space::x) p.x_bytes = std::max(p.x_bytes, v.offset + v.bytes);
    if (v.where == space::y) p.y_bytes = std::max(p.y_bytes, v.offset + v.bytes);
    if (v.where == space::routers) p.routers_bytes = v.bytes;
  }
  detail::compact(p);
  p.saved_bytes = detail::place_kept(p, space::saved);
  p.halfway_bytes = detail::place_kept(p, space::halfway);
  p.forward_temp = detail::place_temporaries(p, p.forward, &value::forward);
  p.backward_temp = detail::place_temporaries(p, p.backward, &value::backward);
}

}  // namespace rankc::lowering
