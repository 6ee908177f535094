// SPDX-License-Identifier: Apache-2.0
// Recomputation: clones forward nodes into backward, before the nodes that read their results, so that the
// results need not be saved.
#pragma once
#include <rankc/lowering/node.hpp>

namespace rankc::lowering {

namespace detail {

class repeater {
 public:
  constexpr explicit repeater(layer_program& p)
      : p_(p), once_(p.values.size(), 0), made_(p.values.size(), 0), in_(p.forward.size(), half::none) {
    for (std::vector<char>* needed : {&first_, &second_, &read_by_second_})
      needed->assign(p.values.size(), 0);
  }

  constexpr void run() {
    find_results();
    for (const node& n : p_.backward)
      n.each_read([&](const port_use& u) {
        if (is_again(u.at.value)) (n.for_weights ? second_ : first_)[u.at.value] = 1;
      });
    read_by_second_ = second_;
    for (const half h : {half::first, half::second})
      for (std::size_t i = in_.size(); i-- > 0;)
        if (in_[i] == half::none && p_.forward[i].repeatable && makes(i, h == half::first ? first_ : second_))
          put(i, h);
    while (advance()) {
    }
    copy_nodes();
  }

 private:
  enum class half : unsigned char { none, first, second };

  /// Marks the values made by nodes that must not run twice.
  constexpr void find_results() {
    for (node& n : p_.forward) {
      n.each_read([&](const port_use& u) {
        n.repeatable &= !(p_.values[u.at.value].where == space::y && once_[u.at.value]);
      });
      n.each_write([&](const port_use& u) {
        made_[u.at.value] = 1;
        once_[u.at.value] |= !n.repeatable;
      });
    }
  }
  /// True if only repeatable forward nodes make a value, so that it can be recomputed.
  constexpr bool is_again(int v) const {
    const space where = p_.values[v].where;
    return made_[v] && !once_[v] && (where == space::temp || where == space::y);
  }

  constexpr bool makes(std::size_t i, const std::vector<char>& needed) const {
    bool any = false;
    p_.forward[i].each_write([&](const port_use& u) { any |= needed[u.at.value] && is_again(u.at.value); });
    return any;
  }
  /// Assigns a clone to a half of backward. The clone's inputs are needed there too. The second half reuses
  /// results of the first.
  constexpr void put(std::size_t i, half h) {
    in_[i] = h;
    std::vector<char>& needed = h == half::first ? first_ : second_;
    const auto mark = [&](const port_use& u) { needed[u.at.value] |= is_again(u.at.value); };
    p_.forward[i].each_read(mark);
    if (h == half::first) p_.forward[i].each_write(mark);
  }

  /// Moves a clone to the first half if leaving it in the second would make the first half keep a value for
  /// it alone, or if the first half needs its result. Returns true if a clone moved.
  constexpr bool advance() {
    bool went = false;
    for (std::size_t i = in_.size(); i-- > 0;) {
      if (in_[i] != half::second) continue;
      bool goes = makes(i, first_);
      p_.forward[i].each_read([&](const port_use& u) {
        goes |= is_again(u.at.value) && first_[u.at.value] && !read_by_second_[u.at.value];
      });
      if (!goes) continue;
      put(i, half::first);
      went = true;
    }
    return went;
  }

  /// A copy of a forward value for backward only.
  constexpr int add_like(int v) {
    value made = p_.values[v];
    made.where = space::temp;
    made.name.again = true;
    return p_.add(made);
  }

  constexpr void copy_nodes() {
    std::vector<int> instead(p_.values.size(), -1);
    nodes all[2];
    for (const half h : {half::first, half::second})
      for (std::size_t i = 0; i < in_.size(); ++i) {
        if (in_[i] != h) continue;
        node n = p_.forward[i];
        n.again = true;
        n.for_weights = h == half::second;
        for (std::size_t p = 0; p < n.ports.size(); ++p) {
          const int v = n.ports[p].at.value;
          if (n.row->ports[p].is_read()) {
            if (instead[v] >= 0) n.ports[p].at.value = instead[v];
          } else if (is_again(v)) {
            if (instead[v] < 0) instead[v] = add_like(v);
            n.ports[p].at.value = instead[v];
          } else {
            n.ports[p].at.value = add_like(v);
          }
        }
        all[h == half::second].push_back(std::move(n));
      }
    for (node& n : p_.backward)
      for (port_use& u : n.ports)
        if (instead[u.at.value] >= 0) u.at.value = instead[u.at.value];
    nodes out;
    for (const bool for_weights : {false, true}) {
      for (node& n : all[for_weights]) out.push_back(std::move(n));
      for (node& n : p_.backward)
        if (n.row && n.for_weights == for_weights) {
          out.push_back(std::move(n));
          n.row = nullptr;
        }
    }
    p_.backward = std::move(out);
  }

  layer_program& p_;
  std::vector<char> once_, made_;  // by value: made by a node that must not run twice; made by forward
  std::vector<char> first_, second_, read_by_second_;  // by value: needed by each half of backward
  std::vector<half> in_;                               // by forward node: the half with its clone
};

}  // namespace detail

/// Clones into backward every repeatable forward node whose result backward reads. The inputs of a clone are
/// either saved or recomputed too. In a split backward the first half recomputes for both. A result that only
/// the second half needs is recomputed there, if its inputs are available anyway.
constexpr void recompute(layer_program& p) { detail::repeater(p).run(); }

}  // namespace rankc::lowering
