// SPDX-License-Identifier: Apache-2.0
// The forward ops of a layer that backward may repeat under the plan's recomputation, and their cost.
#pragma once
#include <rankc/recipe/training.hpp>
#include <rankc/stages/layer_cost.hpp>
#include <rankc/trace/trace.hpp>

#include <vector>

namespace rankc {

/// For each forward op of a layer: 1 if it may be repeated. With `full` these are all ops; otherwise the ops
/// of the chosen families, and conversions of their results. An op that accumulates over microbatches runs
/// only once.
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

/// Visits the ops that backward repeats: repeatable ops whose results backward reads, and repeatable ops
/// whose results these read.
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

/// Floating-point operations of the repeated ops.
/// Units: per token.
constexpr double repeated_flops(const trace& t, const recomputation& r) {
  double total = 0;
  each_repeated(t, r, [&](const op& o) {
    total += o.kind->flops_of(sizes_of(t, o)) / t.values[t.input].shape[0].size;
  });
  return total;
}

/// The cost of the repeated ops on a rank.
/// Units: as layer_cost.
constexpr double repeated_cost(const trace& t, const recomputation& r, const parallel_dims& d) {
  double total = 0;
  each_repeated(t, r, [&](const op& o) { total += cost_of(t, o, d) / t.values[t.input].shape[0].size; });
  return total;
}

}  // namespace rankc
