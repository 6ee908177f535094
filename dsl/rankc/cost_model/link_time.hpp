// SPDX-License-Identifier: Apache-2.0
// What collectives and messages take over the links between the ranks of a group.
#pragma once
#include <rankc/base/recipe.hpp>
#include <rankc/cost_model/gpu_speed.hpp>
#include <rankc/mesh/axes.hpp>
#include <rankc/typed/op_row.hpp>

#include <algorithm>
#include <numeric>

namespace rankc::cost_model {

/// Ranks that communicate: so many, of which `in_node` are in one node.
struct span {
  int ranks = 1, in_node = 1;
};

/// `ranks` ranks, `stride` apart, on nodes of so many. Where groups do not divide a node, some lie on two: of that which has
/// fewest on a node.
constexpr span span_of(int ranks, int stride, int ranks_per_node) {
  const int block = ranks * stride;
  if (ranks_per_node % block == 0) return {ranks, ranks};
  return {ranks, std::max(1, std::gcd(block, ranks_per_node) / stride)};
}

/// The links that a group's ring passes: within a node, or between nodes by as many networks as a node has ranks of it.
constexpr link link_of(const gpu_speed& g, const span& s) {
  if (s.in_node == s.ranks) return g.node;
  return {g.network.latency, std::min(g.node.bandwidth, g.network.bandwidth * s.in_node), std::min(g.node.message_bandwidth, g.network.message_bandwidth)};
}

/// Units: seconds; `bytes` of all that each rank has before or after.
constexpr double gathering_time(const gpu_speed& g, const span& s, double bytes) {
  if (s.ranks < 2) return 0;
  const link by = link_of(g, s);
  return by.latency + bytes * (s.ranks - 1) / s.ranks / by.bandwidth;
}
constexpr double reducing_time(const gpu_speed& g, const span& s, double bytes) {
  if (s.ranks < 2) return 0;
  const link by = link_of(g, s);
  return by.latency + 2 * bytes * (s.ranks - 1) / s.ranks / by.bandwidth;
}
constexpr double message_time(const gpu_speed& g, const span& s, double bytes) {
  if (s.ranks < 2) return 0;
  const link by = link_of(g, s);
  return by.latency + bytes / by.message_bandwidth;
}

/// What a conversion takes. Source: Thakur et al. 2005, rings.
constexpr double conversion_time(const gpu_speed& g, conversion by, const span& s, double bytes) {
  switch (by) {
    case conversion::none:
    case conversion::replicate: return 0;
    case conversion::all_reduce:
    case conversion::all_reduce_max:
    case conversion::all_reduce_batch: return reducing_time(g, s, bytes);
    case conversion::shift:
    case conversion::shift_back: return message_time(g, s, bytes);
    default: return gathering_time(g, s, bytes);
  }
}

}  // namespace rankc::cost_model
