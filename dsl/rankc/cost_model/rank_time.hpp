// SPDX-License-Identifier: Apache-2.0
// The work of a rank in a step, and its time if the rank waits for no other rank: layers, optimizer,
// communication that overlaps these, and the power limit.
#pragma once
#include <rankc/cost_model/layer_time.hpp>
#include <rankc/memory/memory.hpp>

#include <algorithm>
#include <vector>

namespace rankc::cost_model {

/// The predicted time of a step and its parts.
/// Units: seconds.
struct step_prediction {
  double step = 0;
  double products = 0, attention = 0, passes = 0, optimizer = 0, links = 0,
         bubble = 0;   // for the rank with the most work
  double limited = 0;  // slowdown of these by the power limit
  /// The sum of these parts, without the fixed time of a step.
  constexpr double sum() const {
    return products + attention + passes + optimizer + links + bubble + limited;
  }
};

namespace detail {

/// The time of each phase of a stage.
struct stage_spent {
  spent forward, input, weight, again;  // a whole backward is `input`
  constexpr spent all() const {
    spent s = forward;
    s += input;
    s += weight;
    s += again;
    return s;
  }
};

/// Parameters of a pipeline rank, in elements: those that it stores and trains, those that it all-gathers,
/// and those whose gradients it reduces over dp.
struct held {
  double trained = 0, gathered = 0, summed = 0;
  constexpr held& operator+=(const lowering::layer_parameter& w) {
    if (w.trainable) trained += static_cast<double>(w.shard());
    if (w.shards > 1) gathered += static_cast<double>(w.stored());
    if (w.trainable && w.sum_over_dp) summed += static_cast<double>(w.shard());
    return *this;
  }
  constexpr held& operator+=(const held& more) {
    trained += more.trained;
    gathered += more.gathered;
    summed += more.summed;
    return *this;
  }
};

/// The time of the phases of a layer.
constexpr stage_spent phases_of(const gpu_speed& g, const lowering::layer_program& l,
                                const lowering::layer_setting& s, int ranks_per_node,
                                const framework& f = rankc_itself) {
  using lowering::phase;
  const auto takes = [&](phase does) { return time_of(g, l, s, does, ranks_per_node, f); };
  stage_spent one{
      .forward = takes(phase::forward), .input = {}, .weight = {}, .again = takes(phase::recompute)};
  one.input = takes(l.in_halves ? phase::backward_input : phase::backward);
  if (l.in_halves) one.weight = takes(phase::backward_weight);
  if (f.repeats_whole_layers && s.recompute.full && l.repeated > 0) one.again = one.forward;
  return one;
}

/// One lowered layer of a plan on a rank.
/// Units: boundary, bytes of a message between stages.
struct timed_form {
  stage_spent takes;
  std::vector<lowering::layer_parameter> parameters;
  std::size_t boundary = 0;
};

/// The bytes that an update of one weight reads and writes: the weight and its moments twice, the gradient
/// and the working copy once.
/// Units: bytes.
constexpr double updated_bytes(const lowering::optimizer_state& kept, double real, double wide) {
  return 2.0 * static_cast<double>(kept.weight) + 2.0 * kept.moments * static_cast<double>(kept.moment) +
         wide + (kept.working_copy ? real : 0);
}

/// The norm and the optimizer over all trained weights: their memory traffic, and the GEMMs of the
/// optimizer's row.
constexpr effort sweep(const gpu_speed& g, const training& recipe, const lowering::layer_setting& s,
                       double trained, const framework& f = rankc_itself) {
  if (!s.trains) return {};
  const auto real = static_cast<double>(s.bytes(lowering::element_kind::real)),
             wide = static_cast<double>(s.bytes(lowering::element_kind::wide));
  const lowering::optimizer_state kept = lowering::state_of(recipe, s.bytes(lowering::element_kind::real),
                                                            s.bytes(lowering::element_kind::wide), s.trains);
  const double bytes = trained * (updated_bytes(kept, real, wide) + wide + f.sweep_bytes);
  const double operations = trained * recipe.optimizer.row->flops;
  return {g.sweeps.time(bytes) + operations / g.products,
          bytes * g.joules_of_byte + operations * g.joules_of_product};
}

/// The time of communication that overlaps computation: all-gathers of weights and reductions of gradients.
constexpr double beside(const gpu_speed& g, const parallel_dims& d, int ranks_per_node,
                        const training& recipe, const lowering::layer_setting& s, int microbatches,
                        const held& h) {
  const auto real = static_cast<double>(s.bytes(lowering::element_kind::real)),
             wide = static_cast<double>(s.bytes(lowering::element_kind::wide));
  const double sum = recipe.reductions == bf16 ? real : wide;
  const layout mesh(d);
  const span shards = span_of(mesh, axis::fsdp, ranks_per_node),
             replicas = span_of(mesh, axis::replicas, ranks_per_node);
  const bool again = reshards_after_layer(d);
  const double times = again ? microbatches : 1;
  return gathering_time(g, shards, h.gathered * real, waiting::beside) * times * (again ? 2 : 1) +
         gathering_time(g, shards, h.gathered * sum, waiting::beside) * times +
         reducing_time(g, replicas, h.summed * sum, waiting::beside);
}

/// The time of a rank that waits for no other rank.
constexpr step_prediction alone(const gpu_speed& g, const spent& work, const effort& swept, double over_links,
                                const framework& f = rankc_itself) {
  const double slowed = f.sums_beside ? over_links * g.beside : 0;
  const double waited = work.links + (f.sums_beside ? std::max(0.0, over_links - work.seconds())
                                                    : over_links);  // the part that computation does not hide
  step_prediction out{.products = work.products.seconds,
                      .attention = work.attention.seconds,
                      .passes = work.passes.seconds,
                      .optimizer = swept.seconds,
                      .links = waited + slowed};
  const double busy = work.computing().seconds + swept.seconds + slowed + g.step_start;
  out.step = busy + waited;
  // Waiting for a link saves no power for later, because clocks follow the load in milliseconds.
  const double joules = work.computing().joules * f.joules + swept.joules + over_links * g.link_power;
  out.limited = std::max(0.0, joules / (g.power - g.rest) - busy);
  out.step += out.limited;
  return out;
}

}  // namespace detail

}  // namespace rankc::cost_model
