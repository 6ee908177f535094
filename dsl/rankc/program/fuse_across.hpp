// SPDX-License-Identifier: Apache-2.0
// What backward would read forward's values again for, forward does while it reads them: the gradient of logits in the visit
// that sums their exponentials. An evaluation wants the sums alone, and the logits left as they are.
#pragma once
#include <rankc/program/fuse.hpp>

namespace rankc::program {

namespace detail {

/// Visits the pairs of values (result, operand) of which the first may lie where the second does.
constexpr void each_replaced(const bindings& known, const fusion::side& into, auto visit) {
  const std::vector<std::string_view> names = words(into.operands);
  const auto find = [&](auto port) { return known.find(names[static_cast<std::size_t>(port)])->at.value; };
  for (std::size_t port = 0; port < names.size(); ++port)
    for (const std::string_view over : into.kind->ports[port].may_replace)
      if (!over.empty()) visit(find(port), find(into.kind->find(over)));
}

/// Whether the layer alone has what is written over and what is written, and none but the two nodes and its maker touch the former:
/// if another did, both would be kept.
constexpr bool may_write_over(const auto& p, const bindings& known, const fusion::side& into) {
  bool may = true;
  each_replaced(known, into, [&](int result, int operand) {
    may &= p.is_inner({result}) && p.is_inner({operand}) && p.mentions(operand) <= 3;
  });
  return may;
}

/// Training's node is put behind node i of forward, which is evaluation's from here on; node j of backward is gone. What training
/// writes over, and evaluation does not, keeps its name.
constexpr void join_across(auto& p, std::size_t i, std::size_t j, const fusion& f, const bindings& known) {
  node made = p.forward[i];
  made.row = f.into.kind;
  made.only = in_step::training;
  made.number = p.backward[j].number;
  made.ports.clear();
  for (const std::string_view name : words(f.into.operands)) made.ports.push_back(*known.find(name));
  each_replaced(known, f.into, [&](int result, int operand) { p.values[result].name = p.values[operand].name; });
  p.forward[i].only = in_step::evaluation;
  p.forward.insert(p.forward.begin() + static_cast<int>(i) + 1, std::move(made));
  p.backward.erase(p.backward.begin() + static_cast<int>(j));
}

}  // namespace detail

/// Pairs that the table names, of which backward's has no operand but what forward's has, or makes.
constexpr void fuse_across(auto& p, const layer_setting& s) {
  for (const fusion& f : ops::fusions_across) {
    if (kernel_of(*f.into.kind, s.to).name.empty()) continue;
    for (std::size_t i = 0; i < p.forward.size(); ++i)
      for (std::size_t j = 0; j < p.backward.size(); ++j) {
        if (!p.forward[i].is(*f.first.kind) || !p.backward[j].is(*f.second.kind)) continue;
        detail::bindings known;
        if (!known.bind(p.forward[i], f.first.operands, false) || !known.bind(p.backward[j], f.second.operands, false)) continue;
        if (!detail::may_write_over(p, known, f.into)) continue;
        detail::join_across(p, i, j, f, known);
        break;
      }
  }
}

}  // namespace rankc::program
