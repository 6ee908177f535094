// SPDX-License-Identifier: Apache-2.0
// The time of collectives and messages over the links between the ranks of a group.
#pragma once
#include <rankc/recipe/training.hpp>
#include <rankc/cost_model/framework.hpp>
#include <rankc/cost_model/gpu_speed.hpp>
#include <rankc/mesh/layout.hpp>
#include <rankc/trace/op_row.hpp>

#include <algorithm>
#include <numeric>

namespace rankc::cost_model {

/// The size of a group of ranks that communicate, and the number of them that are in one node.
struct span {
  int ranks = 1, in_node = 1;
};

/// A group of `ranks` ranks, `stride` apart, on nodes of `ranks_per_node`. If groups do not divide a node,
/// some are on two nodes; `in_node` is then that of the group with the fewest ranks on a node.
constexpr span span_of(int ranks, int stride, int ranks_per_node) {
  const int block = ranks * stride;
  if (ranks_per_node % block == 0) return {ranks, ranks};
  return {ranks, std::max(1, std::gcd(block, ranks_per_node) / stride)};
}

/// The groups of an axis. Each run of a group's ranks has one stride.
constexpr span span_of(const layout& l, axis over, int ranks_per_node) {
  span all;
  for (const group_shape::run& r : l.groups(over)) {
    const span one = span_of(r.size, r.stride, ranks_per_node);
    all.ranks *= one.ranks;
    all.in_node *= one.in_node;
  }
  return all;
}

/// beside: computation overlaps the collective, or copies do, which slow it as much. alone: nothing overlaps
/// it.
enum class waiting { beside, alone };

/// The mode of a collective that computation waits for.
constexpr waiting waits_for(const framework& f) {
  return f.copies_to_send ? waiting::beside : waiting::alone;
}

constexpr double latency(const gpu_speed& g, const span& s) {
  return s.in_node == s.ranks ? g.node.latency : g.network.latency;
}
/// The bandwidth of a group's ring: within a node, or between nodes through as many networks as a node has
/// ranks of the group. A collective that nothing overlaps is as fast as a message.
constexpr double bandwidth(const gpu_speed& g, const span& s, waiting how) {
  const auto of = [how](const link& l) { return how == waiting::alone ? l.message_bandwidth : l.bandwidth; };
  return s.in_node == s.ranks ? of(g.node) : std::min(of(g.node), of(g.network) * s.in_node);
}

/// The time of an all-gather, a reduce-scatter or an all-to-all.
/// Units: seconds; `bytes` of the complete tensor, which each rank has before or after.
constexpr double gathering_time(const gpu_speed& g, const span& s, double bytes, waiting how) {
  return s.ranks < 2 ? 0 : latency(g, s) + bytes * (s.ranks - 1) / s.ranks / bandwidth(g, s, how);
}
/// The time of an all-reduce.
/// Units: seconds; bytes of a rank's tensor.
constexpr double reducing_time(const gpu_speed& g, const span& s, double bytes, waiting how) {
  return s.ranks < 2 ? 0 : latency(g, s) + 2 * bytes * (s.ranks - 1) / s.ranks / bandwidth(g, s, how);
}
/// The time of a message between two ranks.
/// Units: seconds; bytes of the message.
constexpr double message_time(const gpu_speed& g, const span& s, double bytes) {
  if (s.ranks < 2) return 0;
  const double of_one = s.in_node == s.ranks
                            ? g.node.message_bandwidth
                            : std::min(g.node.message_bandwidth, g.network.message_bandwidth);
  return latency(g, s) + bytes / of_one;
}

/// The time of a conversion.
/// Units: seconds.
/// Source: Thakur et al. 2005, rings.
constexpr double conversion_time(const gpu_speed& g, conversion by, const span& s, double bytes,
                                 waiting how) {
  switch (by) {
    case conversion::none:
    case conversion::replicate:
      return 0;
    case conversion::all_reduce:
    case conversion::all_reduce_max:
    case conversion::all_reduce_batch:
      return reducing_time(g, s, bytes, how);
    case conversion::shift:
    case conversion::shift_back:
      return message_time(g, s, bytes);
    default:
      return gathering_time(g, s, bytes, how);
  }
}

}  // namespace rankc::cost_model
