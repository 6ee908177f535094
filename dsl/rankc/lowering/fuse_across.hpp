// SPDX-License-Identifier: Apache-2.0
// Moves a backward op into forward if forward already reads the same values, e.g. the gradient of the logits
// into the pass that sums their exponentials. Evaluation runs the unfused op, which leaves the logits
// unchanged.
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

/// True if the overwritten value and its replacement are private to the layer, and only the producer and the
/// two fused nodes touch the overwritten one. Another use would force both to be saved.
constexpr bool may_write_over(const layer_program& p, const node& made) {
  bool may = true;
  for (const auto& [out, in] : may_replace(made)) {
    const slice &result = made.ports[out].at, &operand = made.ports[in].at;
    may &= p.is_inner(result) && p.is_inner(operand) && p.mentions(operand.value) <= 3;
  }
  return may;
}

/// Inserts the fused node after node i of forward, for training only. Node i then runs only in evaluation.
/// Node j of backward is removed. A value written in place keeps the name of the value that it overwrites.
constexpr void join_across(layer_program& p, std::size_t i, std::size_t j, node made) {
  for (const auto& [out, in] : may_replace(made))
    p.values[made.ports[out].at.value].name = p.values[made.ports[in].at.value].name;
  p.forward[i].only = in_step::evaluation;
  p.forward.insert(p.forward.begin() + static_cast<int>(i) + 1, std::move(made));
  p.backward.erase(p.backward.begin() + static_cast<int>(j));
}

}  // namespace detail

/// Fuses each listed (forward, backward) pair whose backward op reads only operands and results of the
/// forward op.
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
