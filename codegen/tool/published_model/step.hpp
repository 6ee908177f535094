// SPDX-License-Identifier: Apache-2.0
// A training step of a plan: data parallelism, the 1F1B pipeline, memory, and where the time goes.
#pragma once
#include "layer_cost.hpp"

#include <compare>

namespace rankc::published_model {

/// A plan and its placement. The nv_ members are the ranks of an axis in one domain. tp1d has tp2 = 1; `nb`
/// is for tp2d.
struct plan {
  int dp = 1, tp1 = 1, tp2 = 1, pp = 1, mbs = 1, nb = 1;
  int nv_tp1 = 1, nv_tp2 = 1, nv_dp = 1, nv_pp = 1;
  constexpr auto operator<=>(const plan&) const = default;
};

/// The time between two stages, for one microbatch in one direction. D2: the Python averages over all hops,
/// and counts hops between domains as free.
constexpr link_time hop_time(const setting& on, group pp) {
  if (pp.size == 1) return {};
  const link_time fast = message_time(on.gpu, true), slow = message_time(on.gpu, false);
  if (pp.in_domain == 1) return slow;
  const int hops = pp.size - 1, between = pp.size / pp.in_domain - 1;
  if (on.fix.slowest_hop && between > 0) return slow;
  const double within = double(hops - between) / hops, rest = on.fix.slow_hops ? 1 - within : 0;
  return {within * fast.latency + rest * slow.latency, within * fast.per_gb + rest * slow.per_gb};
}

/// A plan without its microbatch and panels, and the values that follow from it alone.
/// Units: seconds to all-gather one layer's weights, or to reduce-scatter their gradients, over their
/// replicas; GB.
struct placement {
  published_model::plan plan;
  int local_batch = 0, layers = 0;
  link_time hop;
  double gather = 0, weights = 0, optimizer = 0;

  constexpr placement(const setting& on, strategy by, const published_model::plan& p, int global_batch,
                      double layer_weights)
      : plan(p),
        local_batch(global_batch / p.dp),
        layers(on.model.depth / p.pp),
        hop(hop_time(on, {p.pp, p.nv_pp})) {
    const bool weights_on_tp2 = by != strategy::seqp;  // otherwise its ranks are replicas too
    const group replicas = weights_on_tp2 ? group{p.dp, p.nv_dp} : group{p.dp * p.tp2, p.nv_dp * p.nv_tp2};
    gather = collective_time(on, collective::sharded, replicas).of(layer_weights);
    weights = layer_weights * layers;
    optimizer = 6 * (weights / replicas.size);  // master weights, momentum, variance of 4 bytes each
  }

  constexpr published_model::plan with(int mbs, int nb) const {
    published_model::plan p = plan;
    p.mbs = mbs;
    p.nb = nb;
    return p;
  }
};

/// The exposed time of a rank's layers in one of the data-parallel collectives. With overlap, one layer is
/// exposed whole. Each other layer is exposed by the time that exceeds the computation of one layer and
/// microbatch.
constexpr double exposed_time(double gather, double computing, int layers, bool overlap) {
  if (!overlap) return gather * layers;
  return gather + (gather > computing ? (gather - computing) * (layers - 1) : 0);
}

/// The values that a search compares, and their parts. Units: seconds, GB.
struct step_estimate {
  double time = 0, memory = 0;
  double pipeline = 0, bubble = 0, data = 0, stored = 0;
};

constexpr step_estimate estimate_step(const placement& p, const layer_cost& layer, int microbatches,
                                      bool overlap = true) {
  const double pipeline = 2 * microbatches * p.hop.of(layer.boundary);
  const double data = exposed_time(p.gather, layer.forward, p.layers, overlap) +
                      exposed_time(p.gather, layer.backward, p.layers, overlap);
  const double busy = (layer.forward + layer.backward) * microbatches * p.layers + pipeline;
  const double bubble = (p.plan.pp - 1) * (busy / microbatches);
  // The microbatches that the first stage of 1F1B keeps.
  const int held = microbatches < p.plan.pp ? microbatches : p.plan.pp;
  const double stored = layer.stored * p.layers * held;
  const double memory = 2 * p.weights + p.optimizer + stored;  // weights and their gradients
  return {busy + bubble + data, memory, pipeline, bubble, data, stored};
}

/// All values that the Python reports for a plan, by its names. Units: seconds, TFLOP of a GPU, GB; fractions
/// of t.
struct step_cost {
  double t, flops_per_gpu, mem, t_comp, t_mem, t_tp_comm, t_dp_comm, t_pp_comm, t_bubble;
  double comp_frac, tp_comm_frac, dp_comm_frac, pp_comm_frac, bubble_frac, mem_frac;
  double wts_mem, wts_grad_mem, wts_optimizer_states_mem, acts_mem, throughput;
};

struct step_cost_field {
  std::string_view name;
  double step_cost::* at;
};
inline constexpr step_cost_field step_cost_fields[]{
    {"t", &step_cost::t},
    {"flops_per_gpu", &step_cost::flops_per_gpu},
    {"mem", &step_cost::mem},
    {"t_comp", &step_cost::t_comp},
    {"t_mem", &step_cost::t_mem},
    {"t_tp_comm", &step_cost::t_tp_comm},
    {"t_dp_comm", &step_cost::t_dp_comm},
    {"t_pp_comm", &step_cost::t_pp_comm},
    {"t_bubble", &step_cost::t_bubble},
    {"comp_frac", &step_cost::comp_frac},
    {"tp_comm_frac", &step_cost::tp_comm_frac},
    {"dp_comm_frac", &step_cost::dp_comm_frac},
    {"pp_comm_frac", &step_cost::pp_comm_frac},
    {"bubble_frac", &step_cost::bubble_frac},
    {"mem_frac", &step_cost::mem_frac},
    {"wts_mem", &step_cost::wts_mem},
    {"wts_grad_mem", &step_cost::wts_grad_mem},
    {"wts_optimizer_states_mem", &step_cost::wts_optimizer_states_mem},
    {"acts_mem", &step_cost::acts_mem},
    {"throughput", &step_cost::throughput}};

constexpr step_cost cost_of_step(const setting& on, strategy by, const plan& p, int global_batch,
                                 attention_form form = attention_form::fused, bool overlap = true) {
  const layer_cost layer = work_of_layer(on, {by, p.tp1, p.tp2, p.mbs, p.nb}, form)
                               .with_collectives(on, times_of_axes(on, {p.tp1, p.nv_tp1}, {p.tp2, p.nv_tp2}));
  const placement placed(on, by, p, global_batch, layer.weights);
  const int microbatches = placed.local_batch / p.mbs;
  const step_estimate s = estimate_step(placed, layer, microbatches, overlap);
  const double times = double(microbatches) * placed.layers;  // how often a rank runs a layer
  step_cost c{};
  c.t = s.time;
  c.flops_per_gpu = layer.flops * times;
  c.mem = s.memory;
  c.t_comp = layer.compute * times;
  c.t_mem = layer.memory * times;
  c.t_tp_comm = layer.communication * times;
  c.t_dp_comm = s.data;
  c.t_pp_comm = s.pipeline;
  c.t_bubble = s.bubble;
  c.comp_frac = c.t_comp / c.t;
  c.tp_comm_frac = c.t_tp_comm / c.t;
  c.dp_comm_frac = c.t_dp_comm / c.t;
  c.pp_comm_frac = c.t_pp_comm / c.t;
  c.bubble_frac = c.t_bubble / c.t;
  c.mem_frac = c.t_mem / c.t;
  c.wts_mem = c.wts_grad_mem = placed.weights;
  c.wts_optimizer_states_mem = placed.optimizer;
  c.acts_mem = s.stored;
  c.throughput = global_batch / c.t;
  return c;
}

}  // namespace rankc::published_model
