// SPDX-License-Identifier: Apache-2.0
// RC269: the attention kernels of the cluster's GPUs support the heads.
#pragma once
#include <rankc/base/diagnostic.hpp>
#include <rankc/ops/attention.hpp>
#include <rankc/recipe/cluster.hpp>

#include <algorithm>

namespace rankc::detail {

inline constexpr int largest_head_on_gpu = 128;

/// RC269: a head has at most 128 elements on GPUs.
constexpr void check_heads(report& out, const trace& t, std::string_view layer, const cluster& machines) {
  for (std::size_t i = 0; !machines.gpu.empty() && i < t.forward_ops; ++i) {
    const op& o = t.ops[i];
    if (!ops::is_attention(*o.kind)) continue;
    const int head = std::max(t.values[o.in[0]].shape[1].unit, t.values[o.in[2]].shape[1].unit);
    if (head <= largest_head_on_gpu) continue;
    refuse(out, 269) << "a head of layer '" << layer << "' has " << head
                     << " elements, and the attention kernels for GPUs take at most " << largest_head_on_gpu
                     << "; take more and smaller heads, or clusters::cpu";
    return;
  }
}

}  // namespace rankc::detail
