// SPDX-License-Identifier: Apache-2.0
// Which ops of a layer's forward backward may repeat, as the plan says, and what that takes.
#pragma once
#include <rankc/recipe/training.hpp>
#include <rankc/stages/layer_cost.hpp>
#include <rankc/trace/trace.hpp>

#include <vector>

namespace rankc {

/// Whether each op of a layer's forward may be repeated: those of the kinds that are named, and a conversion
/// with the op whose result it converts. What is summed over microbatches is summed once.
/// Shapes: (forward ops).
constexpr std::vector<char> find_repeatable(const trace& t, const recomputation& r) {
  std::vector<char> repeats(t.forward_ops, r.full), of_value(t.values.size(), 0);
  for (std::size_t i = 0; i < t.forward_ops; ++i) {
    const op& o = t.ops[i];
    const op_family f = o.kind->family;
    repeats[i] |= (r.attention && f == op_family::attention) ||
                  (r.activations && f == op_family::activation) || (r.norms && f == op_family::norm) ||
                  (o.kind->converts != conversion::none && of_value[o.in[0]]);
    for (const port& p : o.kind->used_ports())
      if (p.as == use::sum) repeats[i] = 0;
    for (int made : o.out)
      if (made >= 0) of_value[made] = repeats[i];
  }
  return repeats;
}

/// Visit the ops that backward repeats: of those that may be, what it reads, and what these are made of.
constexpr void each_repeated(const trace& t, const recomputation& r, auto visit) {
  const std::vector<char> repeats = find_repeatable(t, r);
  std::vector<char> wanted(t.values.size(), 0);
  const auto want = [&](const op& o) {
    for (int v : o.in)
      if (v >= 0) wanted[v] = 1;
  };
  for (std::size_t i = t.forward_ops; i < t.ops.size(); ++i) want(t.ops[i]);
  for (std::size_t i = t.forward_ops; i-- > 0;) {
    const op& o = t.ops[i];
    bool is_wanted = false;
    for (int made : o.out) is_wanted |= made >= 0 && wanted[made];
    if (!repeats[i] || !is_wanted) continue;
    want(o);
    visit(o);
  }
}

/// Floating-point operations of these. Units: per token.
constexpr double repeated_flops(const trace& t, const recomputation& r) {
  double total = 0;
  each_repeated(t, r, [&](const op& o) {
    total += o.kind->flops_of(sizes_of(t, o)) / t.values[t.input].shape[0].size;
  });
  return total;
}

/// What they cost a rank. Units: as layer_cost.
constexpr double repeated_cost(const trace& t, const recomputation& r, const parallel_dims& d) {
  double total = 0;
  each_repeated(t, r, [&](const op& o) { total += cost_of(t, o, d) / t.values[t.input].shape[0].size; });
  return total;
}

}  // namespace rankc
