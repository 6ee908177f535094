// SPDX-License-Identifier: Apache-2.0
// Fusion by the table: two nodes whose operands match a row's names become the row's op, where the first stood. A value
// that only the two had is gone afterwards.
#include <rankc/ops/fused.hpp>

#include <map>

#include "node.hpp"

namespace rankc::codegen {

namespace {

using bindings = std::map<std::string_view, port_use>;

/// The words of a list, one for each port but scratch.
std::vector<std::string_view> words(std::string_view list) {
  std::vector<std::string_view> out;
  while (!list.empty()) {
    out.push_back(list.substr(0, list.find(' ')));
    list.remove_prefix(std::min(list.size(), out.back().size() + 1));
  }
  return out;
}

/// What a node's operands are called; nothing where two names are one value, or one name two.
bool bind(const node& n, std::string_view names, bool swapped, bindings& known) {
  std::vector<std::string_view> list = words(names);
  if (swapped) std::swap(list[list.size() - 1], list[list.size() - 2]);
  for (std::size_t p = 0, w = 0; p < n.ports.size(); ++p) {
    if (n.row->ports[p].as == use::scratch) continue;
    const std::string_view name = list[w++];
    const auto [at, is_new] = known.try_emplace(name, n.ports[p]);
    if (!is_new && !(at->second == n.ports[p].at)) return false;
    if (is_new)
      for (const auto& [other, value] : known)
        if (other != name && value == n.ports[p].at) return false;
  }
  return true;
}

bool sums(const node& n) {
  return std::any_of(n.row->ports, n.row->ports + n.ports.size(), [](const port& p) { return p.as == use::sum; });
}

class fuser {
 public:
  fuser(layer_program& p, nodes& list, const std::vector<layer_parameter>& parameters, target t)
      : p_(p), list_(list), parameters_(parameters), target_(t) {}

  void run(std::span<const fusion> table) {
    for (int i = 0; i < static_cast<int>(list_.size()); ++i)
      for (bool again = true; again;) {
        again = false;
        for (const fusion& f : table) {
          if (kernel_of(*f.into.kind, target_).name.empty()) continue;
          while (fuse_at(i, f)) again = true;
        }
      }
  }

 private:
  bool fuse_at(int& i, const fusion& f) {
    if (!list_[i].is(*f.first.kind)) return false;
    for (int j = 0; j < static_cast<int>(list_.size()); ++j) {
      if (j == i || !list_[j].is(*f.second.kind)) continue;
      for (const bool swapped : {false, true}) {
        if (swapped && !f.second.kind->commutative) continue;
        bindings known;
        if (!bind(list_[i], f.first.operands, false, known) || !bind(list_[j], f.second.operands, swapped, known)) continue;
        if (!may_join(i, j) || !may_go(known, f.into.operands)) continue;
        join(i, j, f, known);
        if (j < i) --i;
        return true;
      }
    }
    return false;
  }

  /// Whether node j can run where node i stands: in its half, on what is known there; what it makes is no matter between.
  bool may_join(int i, int j) const {
    const node &first = list_[i], &second = list_[j];
    if (first.for_weights != second.for_weights || first.accumulate == accumulation::add) return false;
    if (sums(first) && sums(second) && (first.accumulate != second.accumulate || find_shared(first) != find_shared(second))) return false;
    const int from = std::min(i, j) + 1, to = std::max(i, j);
    bool free = true;
    second.each_read([&](const port_use& r) {
      for (int k = from; k < to; ++k) free &= !list_[k].writes(r.at);
      free &= j > i || !first.writes(r.at);
    });
    second.each_write([&](const port_use& w) {
      for (int k = from; k < to; ++k) free &= !list_[k].mentions(w.at);
    });
    return free;
  }
  /// The parameter shared with another layer into whose gradient a node sums; -1: none.
  int find_shared(const node& n) const {
    int shared = -1;
    n.each_write([&](const port_use& w) {
      if (w.at.where == space::gradient && parameters_[w.at.index].shared) shared = w.at.index;
    });
    return shared;
  }

  /// Whether the values that the new op does not have are of the two nodes alone.
  bool may_go(const bindings& known, std::string_view kept) const {
    const std::vector<std::string_view> names = words(kept);
    return std::all_of(known.begin(), known.end(), [&](const auto& k) {
      return std::find(names.begin(), names.end(), k.first) != names.end() || (p_.is_inner(k.second.at) && p_.mentions(k.second.at) == 2);
    });
  }

  void join(int i, int j, const fusion& f, const bindings& known) {
    const node &first = list_[i], &second = list_[j];
    node made = first;
    made.row = f.into.kind;
    made.accumulate = sums(first) ? first.accumulate : sums(second) ? second.accumulate : accumulation::none;
    for (extent node::*attribute : {&node::rows, &node::seq, &node::number})
      if ((made.*attribute).text.empty()) made.*attribute = second.*attribute;
    made.ports.clear();
    for (std::string_view name : words(f.into.operands)) made.ports.push_back(known.at(name));
    list_[i] = std::move(made);
    list_.erase(list_.begin() + j);
  }

  layer_program& p_;
  nodes& list_;
  const std::vector<layer_parameter>& parameters_;
  const target target_;
};

}  // namespace

void fuse_forward(layer_program& p, const std::vector<layer_parameter>& parameters, target t) {
  fuser(p, p.forward, parameters, t).run(ops::forward_fusions);
}
void fuse_backward(layer_program& p, const std::vector<layer_parameter>& parameters, target t) {
  fuser(p, p.backward, parameters, t).run(ops::backward_fusions);
}

}  // namespace rankc::codegen
