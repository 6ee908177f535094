// SPDX-License-Identifier: Apache-2.0
// The half of a block that has experts instead of an MLP: a router, and SwiGLU of the experts that it chose.
#pragma once
#include <rankc/models/layer.hpp>
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

/// The experts of a layer: how many, how many of them a token goes to, the width of each, and how they are chosen.
struct experts_of_layer {
  int count = 0, picks = 0, ffn = 0;
  router_rule router{};
};

/// x plus what experts make of its norm. The weights of all experts are one tensor, of each expert a matrix (hidden, ffn), whose
/// columns are sharded over tp.
constexpr value add_experts(trace& t, value x, const experts_of_layer& e, int layers, double norm_eps, const layer_context& c) {
  const dim hidden = t.of(x).shape[1], ffn{"expert_ffn", e.ffn}, all{"experts", e.count * hidden.size, hidden.size, hidden.name};
  const auto weight = [&](std::string_view name, double std) {
    return t.parameter(name, {all, ffn}, {{axis::tp, ffn.name}}, initial::normal, std);
  };
  value n2 = as("n2", rms_norm(x, t.parameter("norm2", {hidden}, {}, initial::ones), norm_eps));
  value logits = as("logits", linear(n2, t.parameter("router", {dim{"experts", e.count}, hidden}, {}, initial::normal, 0.02)));
  keep_statistics(logits, e.router, c.routers);
  // Each rank of tp has a part of every expert, and makes a part of the gradient of their weights.
  const routing routed = route(enter_tp(logits, c), e.picks, e.router);
  value weights = as("pick_weights", routed.weights), chosen = as("chosen", routed.chosen);
  const arrangement slots = arrange(chosen, e.count);
  as("places", slots.places), as("offsets", slots.offsets);
  value rows = as("rows", dispatch(enter_tp(n2, c), slots));
  value gate = as("gate", expert_up(rows, weight("experts.gate", 0.02), slots)), up = as("up", expert_up(rows, weight("experts.up", 0.02), slots));
  value act = as("act", swiglu(gate, up));
  value down = as("down", expert_down(act, weight("experts.down", residual_std(layers)), slots));
  return x + leave_tp(as("combined", combine(down, weights, slots)), c);
}

}  // namespace rankc::models
