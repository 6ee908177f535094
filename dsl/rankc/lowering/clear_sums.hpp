// SPDX-License-Identifier: Apache-2.0
// Inserts a `clear` in the first microbatch for gradients that their nodes cannot overwrite. These are
// gradients that several nodes add to, or that have padding, which no node writes. If a node writes several
// gradients, all of them are cleared if one is, or if one belongs to a parameter shared with another layer,
// because a node has one accumulation mode.
#pragma once
#include <rankc/ops/memory.hpp>
#include <rankc/lowering/node.hpp>

#include <algorithm>

namespace rankc::lowering {

namespace detail {

constexpr std::vector<int> gradients_of(const layer_program& p, const auto& n) {
  std::vector<int> of;
  n.each_write([&](const port_use& u) {
    if (p.values[u.at.value].where == space::gradient) of.push_back(u.at.value);
  });
  return of;
}

/// The number of nodes that add to each gradient, by value. Gradients that must be cleared count at least 2.
constexpr std::vector<int> count_sums(const layer_program& p) {
  std::vector<int> sums(p.values.size(), 0);
  for (const node& n : p.backward) {
    const std::vector<int> of = gradients_of(p, n);
    bool mixed = false;
    for (int v : of) mixed |= of.size() > 1 && p.parameters[p.values[v].of].shared;
    for (int v : of) sums[v] += mixed || p.parameters[p.values[v].of].has_padding() ? 2 : 1;
  }
  // Repeats until every node writes only gradients that are cleared, or only gradients that are not.
  for (bool again = std::any_of(sums.begin(), sums.end(), [](int n) { return n > 1; }); again;) {
    again = false;
    for (const node& n : p.backward) {
      int fewest = 2, most = 0;
      const std::vector<int> of = gradients_of(p, n);
      for (int v : of) {
        fewest = std::min(fewest, sums[v]);
        most = std::max(most, sums[v]);
      }
      if (most < 2 || fewest >= 2) continue;
      for (int v : of) sums[v] = std::max(sums[v], 2);
      again = true;
    }
  }
  return sums;
}

/// The elements of a gradient as one dim, with padding.
constexpr local_dim all_elements(layer_program& p, int gradient) {
  const layer_parameter& of = p.parameters[p.values[gradient].of];
  if (of.has_padding()) return {.count = static_cast<long long>(of.stored())};
  const local_shape s = p.shape(p.values[gradient]);
  local_dim all{.count = s.elements(), .composed = static_cast<int>(p.composed.size())};
  p.composed.push_back({composed_dim::product, {}, {s.dims, s.dims + s.ndim}});
  return all;
}

}  // namespace detail

constexpr void clear_sums(layer_program& p) {
  const std::vector<int> sums = detail::count_sums(p);
  if (std::all_of(sums.begin(), sums.end(), [](int n) { return n < 2; })) return;
  for (node& n : p.backward)
    for (int v : detail::gradients_of(p, n))
      if (sums[v] > 1) n.accumulate = accumulation::add;
  nodes all;
  for (int w = 0; w < static_cast<int>(p.parameters.size()); ++w)
    for (std::size_t v = 0; v < sums.size(); ++v) {
      if (sums[v] < 2 || p.values[v].of != w) continue;
      node n{.row = &ops::clear, .accumulate = accumulation::after_first, .wide = true};
      n.ports.push_back(
          {{static_cast<int>(v), 0},
           p.add(local_shape{.dims = {detail::all_elements(p, static_cast<int>(v))}, .ndim = 1})});
      all.push_back(std::move(n));
    }
  for (node& n : p.backward) all.push_back(std::move(n));
  p.backward = std::move(all);
}

}  // namespace rankc::lowering
