// SPDX-License-Identifier: Apache-2.0
// The half of a block that has experts instead of an MLP: a router, and SwiGLU of the experts that it chose.
#pragma once
#include <rankc/models/layer.hpp>
#include <rankc/ops/expert_exchange.hpp>
#include <rankc/ops/experts.hpp>
#include <rankc/ops/router.hpp>

namespace rankc::models {

/// RC256: coefficients of losses of routers.
constexpr void check_router_losses(report& out, const router_losses& l) {
  constexpr double most = 1e6;
  for (const auto& [name, coefficient] : {std::pair("balance", l.balance), std::pair("z", l.z)})
    if (!(coefficient >= 0 && coefficient <= most))
      refuse(out, 256) << "router_losses." << name << "=" << coefficient << "; a coefficient is at least 0 (none) and at most " << most
                       << ": 0.001 and 0.01 are usual";
}

/// The experts of a layer: how many, how many of them a token goes to, the width of each, and how they are chosen; and the width of
/// one that every token goes through beside these, 0: there is none.
struct experts_of_layer {
  int count = 0, picks = 0, ffn = 0;
  router_rule router{};
  int shared_ffn = 0;
};

namespace detail {

/// The weights of all experts are one tensor, of each expert a matrix (hidden, ffn): whole experts on each rank of ep, else of each
/// the columns of a rank of tp.
struct expert_weights {
  dim all, ffn;
  bool by_experts;
  constexpr value declare(trace& t, std::string_view name, double std) const {
    return t.parameter(name, {all, ffn}, {by_experts ? shard{axis::ep, all.name} : shard{axis::tp, ffn.name}}, initial::normal, std);
  }
};
/// SwiGLU of each expert's slots.
constexpr value swiglu_experts(trace& t, value rows, const arrangement& by, const expert_weights& of, int layers) {
  value gate = as("gate", expert_up(rows, of.declare(t, "experts.gate", 0.02), by));
  value up = as("up", expert_up(rows, of.declare(t, "experts.up", 0.02), by));
  value act = as("act", swiglu(gate, up));
  return as("down", expert_down(act, of.declare(t, "experts.down", residual_std(layers)), by));
}

/// SwiGLU of all tokens, of which each rank of tp makes a part. Source: Dai et al. 2024 (DeepSeekMoE), for shared experts.
constexpr value shared_expert(trace& t, value rows, dim ffn, int layers) {
  const dim hidden = t.of(rows).shape[1];
  value gate = as("shared_gate", column_parallel(t, rows, "shared.gate", ffn)), up = as("shared_up", column_parallel(t, rows, "shared.up", ffn));
  return as("shared_down", row_parallel(t, as("shared_act", swiglu(gate, up)), "shared.down", hidden, residual_std(layers)));
}

}  // namespace detail

/// x plus what experts make of its norm.
constexpr value add_experts(trace& t, value x, const experts_of_layer& e, int layers, double norm_eps, const layer_context& c) {
  const dim hidden = t.of(x).shape[1];
  const bool spread = c.ep > 1;  // experts over ranks, which send each other slots of their own tokens
  const dim shared{"shared_ffn", e.shared_ffn};
  const detail::expert_weights weights{dim{"experts", e.count * hidden.size, hidden.size, hidden.name}, dim{"expert_ffn", e.ffn}, spread};
  value n2 = as("n2", rms_norm(x, t.parameter("norm2", {hidden}, {}, initial::ones), norm_eps));
  value logits = as("logits", linear(n2, t.parameter("router", {dim{"experts", e.count}, hidden}, {}, initial::normal, 0.02)));
  keep_statistics(logits, e.router, c.routers);
  const value bias = e.router.has_bias() ? bias_of_choice(t, "router.bias", dim{"experts", e.count}, e.picks, e.router, c.loss_scale) : value{};
  // Else each rank of tp has a part of every expert, and makes a part of the gradient of the picks' weights.
  const routing routed = route(spread ? logits : enter_tp(logits, c), e.picks, e.router, bias);
  value pick_weights = as("pick_weights", routed.weights), chosen = as("chosen", routed.chosen);
  const arrangement slots = arrange(chosen, e.count);
  as("places", slots.places), as("offsets", slots.offsets);
  if (!spread) {
    value h2 = enter_tp(n2, c);
    value down = detail::swiglu_experts(t, as("rows", dispatch(h2, slots)), slots, weights, layers);
    value combined = as("combined", combine(down, pick_weights, slots));
    return x + leave_tp(e.shared_ffn ? combined + detail::shared_expert(t, h2, shared, layers) : combined, c);
  }
  value rows = as("rows", dispatch(n2, slots));
  const dim own = t.of(rows).shape[0], from_all = received_slots(own, e.count, c.ep, c.token_ranks);
  const arrangement there{slots.places, as("offsets_there", share_offsets(slots.offsets, from_all))};
  value received = as("received", to_experts(rows, slots.offsets, from_all));
  value down = detail::swiglu_experts(t, received, there, weights, layers);
  value back = as("back", from_experts(down, slots.offsets, own));
  value y = x + as("combined", combine(back, pick_weights, slots));
  return e.shared_ffn ? y + leave_tp(detail::shared_expert(t, enter_tp(n2, c), shared, layers), c) : y;
}

}  // namespace rankc::models
