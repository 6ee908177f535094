// SPDX-License-Identifier: Apache-2.0
// Overlaps tp's all-gather and reduce-scatter with the GEMM that they feed or follow. Copy engines move the
// rows of one rank while the GEMM of another rank's rows runs. Weight gradients, for which nothing in the
// layer waits, fill the rest of the time. The nodes become neighbours, and the buffers stay allocated until
// both are done.
#pragma once
#include <rankc/ops/memory.hpp>
#include <rankc/lowering/node.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

namespace rankc::lowering {

/// True if an operand has one row per token.
constexpr bool has_token_rows(const port& p) { return p.shape.ndim > 0 && p.shape.dim[0].count == "tokens"; }

namespace detail {

/// True if the node is the conversion `how` over the region axis and can run by rows. Each rank's rows must
/// start at a multiple of 16 bytes: GEMMs are slower at other addresses and lack some epilogues.
constexpr bool moves_rows(const layer_program& p, const node& n, conversion how) {
  return n.row->converts == how && n.over == region_axis && !n.wide && p.part(n).dims[0].width() % 8 == 0;
}

/// True if the GEMM reads the gathered rows exactly once, and as a whole.
constexpr bool takes_gathered(const layer_program& p, const node& product, const node& gather) {
  int uses = 0;
  bool whole = true;
  for (std::size_t i = 0; i < product.ports.size(); ++i) {
    if (product.ports[i].at.value != gather.ports[0].at.value) continue;
    ++uses;
    whole &= product.row->ports[i].is_read() && p.is_whole(product.ports[i]);
  }
  return product.row->by_rows && uses == 1 && whole;
}

/// The index of the GEMM whose result is reduce-scattered, if no node between them communicates or touches
/// the operands. Returns `deals` if there is none.
constexpr std::size_t find_product(const layer_program& p, const nodes& list, std::size_t begin,
                                   std::size_t deals) {
  const port_use &to = list[deals].ports.front(), &from = list[deals].ports.back();
  for (std::size_t i = deals; i-- > begin;) {
    const node& n = list[i];
    const bool makes_it = n.row->by_rows && !n.by_rows && n.ports[0].at == from.at &&
                          p.is_whole(n.ports[0]) && !n.mentions(to.at.value);
    if (n.writes(from.at)) return makes_it ? i : deals;
    if (n.row->communicates() || n.by_rows || n.mentions(from.at.value) || n.mentions(to.at.value))
      return deals;
  }
  return deals;
}

/// True if nothing reads the input of the reduce-scatter afterwards, so that incoming rows may overwrite it.
constexpr bool is_done(const layer_program& p, const nodes& list, std::size_t deals) {
  const int value = list[deals].ports.back().at.value;
  const auto mentions = [&](const node& n) { return n.mentions(value); };
  const nodes& other = &list == &p.forward ? p.backward : p.forward;
  return p.values[static_cast<std::size_t>(value)].where == space::temp &&
         std::none_of(list.begin() + static_cast<std::ptrdiff_t>(deals) + 1, list.end(), mentions) &&
         std::none_of(other.begin(), other.end(), mentions);
}

constexpr void pair_in(const layer_program& p, nodes& list, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    if (i + 1 < end && moves_rows(p, list[i], conversion::all_gather))
      list[i + 1].by_rows = takes_gathered(p, list[i + 1], list[i]) ? 1 : 0;
    if (!moves_rows(p, list[i], conversion::reduce_scatter) || !is_done(p, list, i)) continue;
    const std::size_t product = find_product(p, list, begin, i);
    if (product == i) continue;
    move_node(list, i, product + 1);
    list[product + 1].by_rows = 1;
  }
}

/// True if the node only adds to weight gradients, in every microbatch.
constexpr bool makes_gradients(const layer_program& p, const node& n) {
  bool all = n.sums() && !n.is(ops::clear) && !n.joins && !n.by_rows;
  n.each_write([&](const port_use& u) {
    all &= p.values[static_cast<std::size_t>(u.at.value)].where == space::gradient;
  });
  return all;
}
/// True if two nodes can run in either order.
constexpr bool are_apart(const node& a, const node& b) {
  bool apart = true;
  a.each_write([&](const port_use& u) { apart &= !b.mentions(u.at.value); });
  b.each_write([&](const port_use& u) { apart &= !a.mentions(u.at.value); });
  return apart;
}

/// Index of the last node after the previous communication that does not touch the gathered rows and can
/// overlap the gather. Returns `gathers` if there is none.
constexpr std::size_t find_meanwhile(const layer_program& p, const nodes& list, std::size_t begin,
                                     std::size_t gathers) {
  for (std::size_t i = gathers; i-- > begin && !list[i].row->communicates() && !list[i].by_rows;) {
    bool may_wait = makes_gradients(p, list[i]) && !list[i].mentions(list[gathers].ports.back().at.value);
    for (std::size_t k = i + 1; may_wait && k <= gathers; ++k) may_wait = are_apart(list[i], list[k]);
    if (may_wait) return i;
  }
  return gathers;
}

/// Moves weight-gradient nodes between an all-gather and its GEMM, or between a GEMM and its reduce-scatter.
constexpr void fill_pairs_in(const layer_program& p, nodes& list, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i + 1 < end; ++i) {
    if (list[i + 1].by_rows == 0 || list[i].row->converts != conversion::all_gather) continue;
    const std::size_t from = find_meanwhile(p, list, begin, i);
    move_node(list, from, i);
    if (from < i) list[i + 1].by_rows = 2;
  }
  for (std::size_t i = begin; i + 1 < end; ++i) {
    if (list[i].by_rows == 0 || list[i].row->converts != conversion::reduce_scatter) continue;
    if (!makes_gradients(p, list[i + 1]) || !are_apart(list[i], list[i + 1])) continue;
    std::swap(list[i], list[i + 1]);
    list[++i].by_rows = 2;
  }
}

}  // namespace detail

/// Applies the pass to each phase separately, because each phase becomes one function.
constexpr void pair_by_rows(layer_program& p) {
  const auto pair = [&](nodes& list, std::size_t begin, std::size_t end) {
    detail::pair_in(p, list, begin, end);
    detail::fill_pairs_in(p, list, begin, end);
  };
  pair(p.forward, 0, p.forward.size());
  p.each_phase_of_backward([&](std::size_t begin, std::size_t end) { pair(p.backward, begin, end); });
}

}  // namespace rankc::lowering
