// SPDX-License-Identifier: Apache-2.0
// The pipeline rank of a plan that needs the most memory, on the target of its cluster.
#pragma once
#include <rankc/memory/memory.hpp>

#include <algorithm>
#include <vector>

namespace rankc {

using lowering::target;

/// The target of a plan for a cluster: cuda if the cluster has GPUs.
constexpr target target_of(const cluster& c) {
  return c.flops > 0 || c.within_node > 0 ? target::cuda : target::host;
}
/// The precision in which a target computes a plan. The host has no bf16 and uses f32.
constexpr precision precision_on(target to, precision p) { return to == target::host && p == bf16 ? f32 : p; }

namespace detail {

constexpr lowering::layer_setting setting_for(const plan_data& p, target to) {
  return lowering::setting_of(p, precision_on(to, p.recipe.precision), to);
}

/// The memory of the worst rank. `at_most` is an upper bound. `bytes` is exact, or a lower bound if bounds
/// are asked for.
/// Units: bytes.
struct worst_rank {
  int rank = 0;
  std::size_t bytes = 0, at_most = 0;
};
constexpr worst_rank find_worst(const plan_data& p, const auto& layers, const lowering::layer_setting& s,
                                bool bounds) {
  worst_rank worst;
  int rank = 0;
  for (const lowering::rank_memory& m : lowering::memory_of(p, layers, s, bounds)) {
    if (m.total() > worst.bytes) {
      worst.rank = rank;
      worst.bytes = m.total();
    }
    worst.at_most = std::max(worst.at_most, m.total() + m.between);
    ++rank;
  }
  return worst;
}
constexpr worst_rank find_worst(const plan_data& p, target to) {
  const lowering::layer_setting s = setting_for(p, to);
  return find_worst(p, lowering::lower_layers(p, s), s, false);
}

}  // namespace detail

}  // namespace rankc
