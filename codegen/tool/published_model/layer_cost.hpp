// SPDX-License-Identifier: Apache-2.0
// The cost of a layer: first the work, which is the same for every placement, then the collectives of one
// placement.
#pragma once
#include "layer.hpp"

namespace rankc::published_model {

/// Sums over a layer's ops for one microbatch. Units: TFLOP, seconds, GB. The parts of the time include both
/// directions.
struct layer_cost {
  double flops = 0, forward = 0, backward = 0, compute = 0, memory = 0, communication = 0;
  double weights = 0, stored = 0;
  double boundary = 0;  // a stage's message to the next: as large as what ln1 stores
};

/// A layer without the time of its collectives, and the data to add that time.
struct layer_work {
  struct communicating_op {
    transfer first, second;
    int panels = 0;
    both_ways computing;
  };
  static constexpr int most_communicating = 10;  // attention by SUMMA has 9

  layer_cost sums;
  int communicating = 0;
  communicating_op at[most_communicating] = {};

  constexpr void add(const setting& on, const op& x) {
    const work_time forward = time_of_work(on, x, x.forward), backward = time_of_work(on, x, x.backward);
    const both_ways computing{forward.total(), backward.total()};
    sums.flops += counted_flops(on, x.forward) + counted_flops(on, x.backward);
    sums.forward += computing.forward;
    sums.backward += computing.backward;
    sums.compute += forward.compute + backward.compute;
    sums.memory += forward.exposed_memory() + backward.exposed_memory();
    sums.weights += x.weights;
    sums.stored += x.stored;
    if (x.first.volume > 0 || x.second.volume > 0)
      at[communicating++] = {x.first, x.second, x.panels, computing};
    if (!x.recomputed) return;
    sums.backward += computing.forward;  // such ops do not communicate
    if (!on.fix.recomputed_parts) return;
    sums.compute += forward.compute;  // D12
    sums.memory += forward.exposed_memory();
  }

  constexpr layer_cost with_collectives(const setting& on, const axis_times& axes) const {
    both_ways added;
    for (const communicating_op* x = at; x != at + communicating; ++x) {
      const both_ways t = time_of_transfers(on, x->first, x->second, x->panels, x->computing, axes);
      added.forward += t.forward;
      added.backward += t.backward;
    }
    layer_cost all = sums;
    all.forward += added.forward;
    all.backward += added.backward;
    all.communication = added.forward + added.backward;
    return all;
  }
};

constexpr layer_work work_of_layer(const setting& on, const layer_split& s,
                                   attention_form form = attention_form::fused) {
  layer_work work;
  visit_mlp(on, s, [&](const op& x) {
    work.add(on, x);
    work.sums.boundary = x.stored;  // ln1 is the last
  });
  visit_attention(on, s, form, [&](const op& x) { work.add(on, x); });
  return work;
}

}  // namespace rankc::published_model
