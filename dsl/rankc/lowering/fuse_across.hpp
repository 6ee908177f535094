// SPDX-License-Identifier: Apache-2.0
// What backward would read forward's values again for, forward does while it reads them: the gradient of
// logits in the visit that sums their exponentials. An evaluation wants the sums alone, and the logits left
// as they are.
#pragma once
#include <rankc/lowering/fuse.hpp>
#include <rankc/lowering/storage.hpp>

namespace rankc::lowering {

namespace detail {

constexpr node joined_of_training(const node& forward, const node& backward, const fusion& f,
                                  const bindings& known) {
  node made = forward;
  made.row = f.into.kind;
  made.only = in_step::training;
  made.number = backward.number;
  made.ports = known.uses(f.into.operands);
  return made;
}

/// Whether the layer alone has what a node writes over and what it writes there, and none but the two joined
/// in it and its maker touch the former: if another did, both would be kept.
constexpr bool may_write_over(const layer_program& p, const node& made) {
  bool may = true;
  for (const auto& [out, in] : may_replace(made)) {
    const slice &result = made.ports[out].at, &operand = made.ports[in].at;
    may &= p.is_inner(result) && p.is_inner(operand) && p.mentions(operand.value) <= 3;
  }
  return may;
}

/// Training's node is put behind node i of forward, which is evaluation's from here on; node j of backward is
/// gone. What training writes over, and evaluation does not, keeps its name.
constexpr void join_across(layer_program& p, std::size_t i, std::size_t j, node made) {
  for (const auto& [out, in] : may_replace(made))
    p.values[made.ports[out].at.value].name = p.values[made.ports[in].at.value].name;
  p.forward[i].only = in_step::evaluation;
  p.forward.insert(p.forward.begin() + static_cast<int>(i) + 1, std::move(made));
  p.backward.erase(p.backward.begin() + static_cast<int>(j));
}

}  // namespace detail

/// Pairs that the table names, of which backward's has no operand but what forward's has, or makes.
constexpr void fuse_across(layer_program& p, const layer_setting& s) {
  for (const fusion& f : ops::fusions_across) {
    if (kernel_of(*f.into.kind, s.to).name.empty()) continue;
    for (std::size_t i = 0; i < p.forward.size(); ++i)
      for (std::size_t j = 0; j < p.backward.size(); ++j) {
        const node &first = p.forward[i], &second = p.backward[j];
        if (!first.is(*f.first.kind) || !second.is(*f.second.kind)) continue;
        detail::bindings known;
        if (!known.bind(first, f.first.operands, false) || !known.bind(second, f.second.operands, false))
          continue;
        node made = detail::joined_of_training(first, second, f, known);
        if (!detail::may_write_over(p, made)) continue;
        detail::join_across(p, i, j, std::move(made));
        break;
      }
  }
}

}  // namespace rankc::lowering
