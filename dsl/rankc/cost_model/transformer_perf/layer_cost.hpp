// SPDX-License-Identifier: Apache-2.0
// What a layer costs: first the work, which is the same wherever its ranks lie, then the collectives of one placement.
#pragma once
#include <rankc/cost_model/transformer_perf/layer.hpp>

namespace rankc::cost_model::transformer_perf {

/// Sums over a layer's ops for one microbatch. Units: TFLOP, seconds, GB; parts of the time are of both directions.
struct layer_cost {
  double flops = 0, forward = 0, backward = 0, compute = 0, memory = 0, communication = 0;
  double weights = 0, stored = 0;
  double boundary = 0;  // what a stage sends the next: as much as ln1 stores
};

/// A layer without the time of its collectives, and what is needed to add it.
struct layer_work {
  struct communicating_pass {
    pass of;
    int panels = 0;
    double computing = 0;
    bool backward = false;
  };
  static constexpr int most_passes = 20;  // of attention by SUMMA: 18

  layer_cost sums;
  int passes = 0;
  communicating_pass pass_at[most_passes] = {};

  constexpr void add(const op& x, const pass& p, const work_time& t, bool backward) {
    (backward ? sums.backward : sums.forward) += t.total();
    sums.compute += t.compute;
    sums.memory += t.exposed_memory();
    if (p.communicates()) pass_at[passes++] = {p, x.panels, t.total(), backward};
  }

  constexpr void add(const setting& on, const op& x) {
    const work_time forward = time_of_work(on, x, x.forward);
    add(x, x.forward, forward, false);
    add(x, x.backward, time_of_work(on, x, x.backward), true);
    if (x.recomputed) sums.backward += forward.total();  // such ops do not communicate
    if (x.recomputed && on.fix.recomputed_parts) {       // D12
      sums.compute += forward.compute;
      sums.memory += forward.exposed_memory();
    }
    sums.flops += counted_flops(on, x.forward) + counted_flops(on, x.backward);
    sums.weights += x.weights;
    sums.stored += x.stored;
    if (x.name == "ln1") sums.boundary = x.stored;
  }

  constexpr layer_cost with_collectives(const setting& on, const axis_times& axes) const {
    layer_cost all = sums;
    for (const communicating_pass* p = pass_at; p != pass_at + passes; ++p) {
      const double t = time_of_transfers(on, p->of, p->panels, p->computing, axes);
      (p->backward ? all.backward : all.forward) += t;
      all.communication += t;
    }
    return all;
  }
};

constexpr layer_work work_of_layer(const setting& on, const layer_split& s, attention_form form = attention_form::fused) {
  layer_work work;
  const auto add = [&](const op& x) { work.add(on, x); };
  visit_mlp(on, s, add);
  visit_attention(on, s, form, add);
  return work;
}

}  // namespace rankc::cost_model::transformer_perf
