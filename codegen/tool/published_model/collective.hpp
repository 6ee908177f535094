// SPDX-License-Identifier: Apache-2.0
// Times of collectives on rings through NVLink domains, and of a message between two GPUs.
#pragma once
#include "setting.hpp"

#include <algorithm>

namespace rankc::published_model {

/// The kinds that the model distinguishes: broadcast or reduce; all-gather or reduce-scatter; all-reduce.
enum class collective { rooted, sharded, all_reduce };

/// Ranks that communicate, and how many of them share a domain.
struct group {
  int size = 1, in_domain = 1;
};

/// The time of a collective as a function of the volume of the complete tensor. Units: seconds, seconds per
/// GB.
struct link_time {
  double latency = 0, per_gb = 0;
  constexpr double of(double volume) const { return volume > 0 ? latency + volume * per_gb : 0; }
};

constexpr double slow_bandwidth(const gpu_system& gpu) { return gpu.ib_bandwidth * gpu.ib_efficiency; }
constexpr double fast_bandwidth(const gpu_system& gpu) {
  return gpu.nvlink_bandwidth * gpu.nvlink_efficiency;
}

/// A message to another GPU of the domain, or of another domain.
constexpr link_time message_time(const gpu_system& gpu, bool in_domain) {
  if (in_domain) return {gpu.nvlink_latency, 1 / fast_bandwidth(gpu)};
  return {gpu.ib_latency, 1 / slow_bandwidth(gpu)};
}

constexpr link_time collective_time(const setting& on, collective kind, group ranks) {
  if (ranks.size == 1) return {};
  const gpu_system& gpu = on.gpu;
  const double slow = slow_bandwidth(gpu), fast = fast_bandwidth(gpu);
  const double share =
      kind == collective::rooted ? 1 : double(ranks.size - 1) / ranks.size;  // that each rank sends
  const bool twice = kind == collective::all_reduce;
  const double passes = twice && on.fix.all_reduce ? 2 : 1;  // D3
  if (ranks.in_domain == 1) return {passes * gpu.ib_latency * (ranks.size - 1), passes * share / slow};
  if (ranks.in_domain == ranks.size)
    return {passes * gpu.nvlink_latency * (ranks.size - 1), passes * share / fast};
  const int domains = ranks.size / ranks.in_domain;
  const double narrowest =
      std::min(gpu.nic_factor * ranks.in_domain * slow, fast);  // a ring through each network card
  const double latency = gpu.ib_latency * (domains - 1) + gpu.nvlink_latency * (ranks.size - domains);
  return {passes * latency, (twice ? 2 : 1) * share / narrowest};
}

}  // namespace rankc::published_model
