// SPDX-License-Identifier: Apache-2.0
// Fuses pairs of nodes by a table of patterns. The fused node replaces the first of the pair. A value that
// only the pair used is removed.
#pragma once
#include <rankc/ops/fp8.hpp>
#include <rankc/lowering/node.hpp>

#include <algorithm>

namespace rankc::lowering {

namespace detail {

/// The words of a list of operands: one for each port except scratch.
constexpr std::vector<std::string_view> words(auto list) {
  std::vector<std::string_view> out;
  while (!list.empty()) {
    out.push_back(list.substr(0, list.find(' ')));
    list.remove_prefix(std::min(list.size(), out.back().size() + 1));
  }
  return out;
}

/// The operands of a pair of nodes, by their names in a pattern.
struct bindings {
  struct bound {
    std::string_view name;
    const port_use* to;
  };
  std::vector<bound> all;

  constexpr const port_use* find(std::string_view name) const {
    for (const bound& b : all)
      if (b.name == name) return b.to;
    return nullptr;
  }
  /// The operands for a row whose ports have these names.
  constexpr std::vector<port_use> uses(std::string_view names) const {
    std::vector<port_use> out;
    for (std::string_view name : words(names)) out.push_back(*find(name));
    return out;
  }
  /// Binds the names to a node's operands. False if two names are one value, or one name is two values.
  constexpr bool bind(const auto& n, std::string_view names, bool swapped) {
    std::vector<std::string_view> list = words(names);
    if (swapped) std::swap(list[list.size() - 1], list[list.size() - 2]);
    for (std::size_t p = 0, w = 0; p < n.ports.size(); ++p) {
      if (n.row->ports[p].as == use::scratch) continue;
      const std::string_view name = list[w++];
      for (const bound& b : all)
        if ((b.name == name) != (b.to->at == n.ports[p].at)) return false;
      if (!find(name)) all.push_back({name, &n.ports[p]});
    }
    return true;
  }
};

class fuser {
 public:
  constexpr fuser(layer_program& p, nodes& list, const layer_setting& s) : p_(p), list_(list), s_(s) {}

  constexpr void run(std::span<const fusion> table) {
    for (const fusion& f : table)
      if (is_taken(f))
        for (int i = 0; i < static_cast<int>(list_.size()); ++i)
          while (list_[i].is(*f.first.kind) && fuse_at(i, f)) {
          }
  }

 private:
  /// True if the target has the fused kernel. A GEMM that has an fp8 variant is fused only into ops that have
  /// one.
  constexpr bool is_taken(const fusion& f) const {
    const bool widens =
        s_.linears != linear_precision::plain && ops::has_fp8(*f.first.kind) && !ops::has_fp8(*f.into.kind);
    return !widens && !kernel_of(*f.into.kind, s_.to).name.empty();
  }

  constexpr bool fuse_at(int& i, const fusion& f) {
    for (int j = 0; j < static_cast<int>(list_.size()); ++j) {
      if (j == i || !list_[j].is(*f.second.kind) || !meet(list_[i], list_[j])) continue;
      for (int swapped = 0; swapped <= f.second.kind->commutative; ++swapped) {
        bindings known;
        if (!known.bind(list_[i], f.first.operands, false) ||
            !known.bind(list_[j], f.second.operands, swapped))
          continue;
        if (!may_join(i, j) || !may_go(known, f.into.operands)) continue;
        join(i, j, f, known);
        if (j < i) --i;
        return true;
      }
    }
    return false;
  }

  /// True if two nodes have a value in common.
  static constexpr bool meet(const node& a, const node& b) {
    for (const port_use& u : a.ports)
      if (b.mentions(u.at.value)) return true;
    return false;
  }

  /// True if node j can run in the place of node i. Both are in the same half of backward, and both or
  /// neither may be recomputed. No node between them writes j's inputs or touches j's outputs.
  constexpr bool may_join(int i, int j) const {
    const node &first = list_[i], &second = list_[j];
    if (first.for_weights != second.for_weights || first.repeatable != second.repeatable ||
        first.accumulate == accumulation::add)
      return false;
    if (first.sums() && second.sums() &&
        (first.accumulate != second.accumulate || find_shared(first) != find_shared(second)))
      return false;
    const int from = std::min(i, j) + 1, to = std::max(i, j);
    bool free = true;
    second.each_read([&](const port_use& r) {
      for (int k = from; k < to; ++k) free &= !list_[k].writes(r.at);
      free &= j > i || !first.writes(r.at);
    });
    second.each_write([&](const port_use& w) {
      for (int k = from; k < to; ++k) free &= !list_[k].mentions(w.at.value);
    });
    return free;
  }
  /// If a node adds to the gradient of a parameter shared with another layer, that parameter; else -1.
  constexpr int find_shared(const node& n) const {
    int shared = -1;
    n.each_write([&](const port_use& w) {
      const value& v = p_.values[w.at.value];
      if (v.where == space::gradient && p_.parameters[v.of].shared) shared = v.of;
    });
    return shared;
  }

  /// True if the values that the fused op lacks are used by the two nodes only.
  constexpr bool may_go(const bindings& known, std::string_view kept) const {
    const std::vector<std::string_view> names = words(kept);
    for (const auto& [name, to] : known.all)
      if (std::find(names.begin(), names.end(), name) == names.end() &&
          !(p_.is_inner(to->at) && p_.mentions(to->at.value) == 2))
        return false;
    return true;
  }

  constexpr void join(int i, int j, const fusion& f, const bindings& known) {
    const node &first = list_[i], &second = list_[j];
    node made = first;
    made.row = f.into.kind;
    if (!first.sums()) made.accumulate = second.sums() ? second.accumulate : accumulation::none;
    if (made.rows == 0) made.rows = second.rows;
    if (made.seq == 0) made.seq = second.seq;
    if (made.number == 0) made.number = second.number;
    made.ports = known.uses(f.into.operands);
    list_[i] = std::move(made);
    list_.erase(list_.begin() + j);
  }

  layer_program& p_;
  nodes& list_;
  const layer_setting& s_;
};

}  // namespace detail

/// Fuses the pairs for which the target has the fused kernel.
constexpr void fuse_forward(layer_program& p, const layer_setting& s) {
  detail::fuser(p, p.forward, s).run(ops::forward_fusions);
}
constexpr void fuse_backward(layer_program& p, const layer_setting& s) {
  detail::fuser(p, p.backward, s).run(ops::backward_fusions);
}

}  // namespace rankc::lowering
