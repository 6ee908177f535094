// SPDX-License-Identifier: Apache-2.0
// The MoE half of a block: a router, and SwiGLU experts that it chooses.
#pragma once
#include <rankc/models/blocks.hpp>
#include <rankc/ops/expert_exchange.hpp>
#include <rankc/ops/experts.hpp>
#include <rankc/ops/router.hpp>

namespace rankc::models {

/// RC256: the coefficients of router losses are in range, and expert_load is not combined with local losses.
constexpr void check_model_routers(report& out, const model_routers& r) {
  const router_losses& l = r.losses;
  constexpr double most = 1e6;
  for (const auto& [name, coefficient] : {std::pair("balance", l.balance), std::pair("z", l.z)})
    if (!(coefficient >= 0 && coefficient <= most))
      refuse(out, 256) << "router_losses." << name << "=" << coefficient
                       << "; a coefficient is at least 0 (none) and at most " << most
                       << ": 0.001 and 0.01 are usual";
  if (r.counted && l.any() && l.local)
    refuse(out, 256) << "expert_load=true counts choices over the batch, but router_losses.local=true counts "
                        "those of one rank; take local=false";
}

/// RC258: the capacity of experts.
constexpr void check_capacity(report& out, double capacity, int group, const model_routers& r) {
  constexpr double most = 1e6;
  const int experts = r.experts;
  const router_losses& l = r.losses;
  if (!(capacity >= 0 && capacity <= most))
    refuse(out, 258)
        << "capacity=" << capacity
        << "; it multiplies the equal share of the picks of each expert: 1 and 1.25 are usual, 0 drops "
           "nothing, and "
        << most << " is the maximum";
  if (group < 0 || (group > 0 && capacity == 0))
    refuse(out, 258) << "capacity_group=" << group
                     << (group < 0
                             ? "; it is a number of tokens, at least 1, or 0 for whole sequences"
                             : " with capacity=0, which drops nothing; leave it out, or set a capacity");
  if (r.overflow == overflow::fail && capacity == 0)
    refuse(out, 258) << "overflow=fail with capacity=0, which drops nothing; set a capacity, usually 1.25, "
                        "or leave overflow out";
  if (capacity > 0 && experts < 2)
    refuse(out, 258) << "capacity=" << capacity << " with experts=" << experts
                     << "; a capacity needs at least 2 experts";
  if (capacity > 0 && l.any() && l.local)
    refuse(out, 258)
        << "capacity=" << capacity
        << " with router_losses.local=true, whose sums are of the tokens of one rank; picks that are "
        << "dropped are counted over the batch: local=false";
}

/// The experts of a layer: `count` experts of width `ffn`; each token goes to `picks` of them (top-k).
///   shared_ffn      width of an expert that all tokens go through as well; 0: none
///   capacity        an expert takes capacity * (an even share of the choices) from each group of tokens;
///                   0: all
///   capacity_group  consecutive tokens of a sequence in one group; 0: the whole sequence
/// The weights of the other experts of a token do not change if one of its choices is dropped.
/// Source: Lepikhin et al. 2020 (GShard); Megatron-LM, moe_expert_capacity_factor.
struct experts_of_layer {
  int count = 0, picks = 0, ffn = 0;
  router_rule router{};
  int shared_ffn = 0;
  double capacity = 0;
  int capacity_group = 0;
  /// The capacity for sequences of `seq` tokens, rounded up. An expert takes at most one choice of each
  /// token.
  constexpr expert_limit limit(int seq) const {
    if (capacity == 0) return {};
    const int group = capacity_group ? capacity_group : seq;
    const double share = capacity * group * picks / count;
    if (!(share < group)) return {group, group};
    const int whole = static_cast<int>(share);
    return {group, whole + (whole < share)};
  }
};

/// The experts of a model that declares their numbers as mixtral does.
constexpr experts_of_layer declared_experts(const auto& model) {
  return {.count = model.experts,
          .picks = model.top_k,
          .ffn = model.expert_ffn,
          .capacity = model.capacity,
          .capacity_group = model.capacity_group};
}
/// The routers of such a model. `layers`: the number of its layers with experts.
constexpr model_routers declared_routers(const auto& model, int layers) {
  return {layers,         model.experts,    model.top_k, model.router_losses, model.capacity != 0,
          model.overflow, model.expert_load};
}

namespace detail {

/// The weights of all experts are one tensor of matrices (hidden, ffn), one for each expert. With ep, each ep
/// rank has some experts, and each etp rank some of their columns. Without ep, each tp rank has some columns
/// of all experts.
struct expert_weights {
  dim all, ffn;
  bool by_experts, by_columns;
  constexpr value declare(trace& t, std::string_view name, double std) const {
    if (by_columns)
      return t.parameter(name, {all, ffn}, {{axis::ep, all.name}, {axis::etp, ffn.name}}, initial::normal,
                         std);
    return t.parameter(name, {all, ffn},
                       {by_experts ? shard{axis::ep, all.name} : shard{region_axis, ffn.name}},
                       initial::normal, std);
  }
};
constexpr value swiglu_experts(trace& t, value rows, const arrangement& by, const expert_weights& of,
                               int layers) {
  value gate = as("gate", expert_up(rows, of.declare(t, "experts.gate", initial_std), by));
  value up = as("up", expert_up(rows, of.declare(t, "experts.up", initial_std), by));
  value act = as("act", swiglu(gate, up));
  return as("down", expert_down(act, of.declare(t, "experts.down", residual_std(layers)), by));
}

/// SwiGLU of all tokens; the result is a partial sum over tp.
/// Shapes: rows (tokens, hidden); result (tokens, hidden).
/// Source: Dai et al. 2024 (DeepSeekMoE), for shared experts.
constexpr value shared_expert(trace& t, value rows, dim ffn, int layers) {
  const dim hidden = t.of(rows).shape[1];
  value gate = as("shared_gate", column_parallel(t, rows, "shared.gate", ffn)),
        up = as("shared_up", column_parallel(t, rows, "shared.up", ffn));
  return as("shared_down",
            row_parallel(t, as("shared_act", swiglu(gate, up)), "shared.down", hidden, residual_std(layers)));
}

/// Keeps the statistics of a layer's router. With sequence parallelism a tp rank has routed the gathered
/// tokens of all tp ranks. For the statistics it routes its own tokens again.
constexpr void keep_own_statistics(value logits, value bias, const experts_of_layer& e, value chosen,
                                   value places, bool has_others, const layer_context& c) {
  if (!c.routers.any()) return;
  const bool limited = e.limit(c.seq).any();
  if (has_others) {
    chosen = route(logits, e.picks, e.router, bias).chosen;
    if (limited) places = arrange(chosen, e.count, e.limit(c.seq)).places;
  }
  keep_statistics(logits, chosen, e.router, c.routers, limited ? places : value{});
}

/// MoE if the ranks of ep have the same tokens: each rank runs its own experts, and an all-reduce over ep
/// sums the results.
constexpr value add_up_experts(trace& t, value n2, value pick_weights, const arrangement& slots,
                               const expert_weights& weights, int layers) {
  const arrangement own = own_slots(slots);
  as("own_places", own.places);
  as("own_offsets", own.offsets);
  value rows = as("rows", dispatch(replicate(n2, axis::ep), own));
  value down = swiglu_experts(t, rows, own, weights, layers);
  return all_reduce(as("combined", combine(down, pick_weights, own)), axis::ep);
}

/// MoE if the ranks of ep have different tokens: an all-to-all sends slots to the ranks of their experts and
/// back.
constexpr value exchange_slots(trace& t, value n2, value pick_weights, const arrangement& slots,
                               const expert_weights& weights, int layers, const experts_of_layer& e,
                               const layer_context& c) {
  value rows = as("rows", dispatch(n2, slots));
  const dim own = t.of(rows).shape[0],
            from_all = received_slots(own, e.count, c.ep, c.token_ranks, e.limit(c.seq));
  arrangement there{slots.places, as("offsets_there", share_offsets(slots.offsets, from_all))};
  value received = as("received", to_experts(rows, slots.offsets, from_all));
  if (weights.by_columns) {
    const dim gathered = gathered_slots(from_all, c.etp);
    there.offsets = as("offsets_of_all", gather_offsets(there.offsets, gathered, c.etp));
    received = as("received_of_all", gather_slots(received, gathered));
  }
  value down = swiglu_experts(t, received, there, weights, layers);
  if (weights.by_columns) down = as("down_of_rank", scatter_slots(down, from_all));
  value back = as("back", from_experts(down, slots.offsets, own));
  return as("combined", combine(back, pick_weights, slots));
}

}  // namespace detail

namespace detail {
/// RC210: experts have no biases, and their only norm is before them.
constexpr void check_expert_setting(trace& t, const block_setting& of) {
  if (!of.biases && of.norms == norm_place::before) return;
  complaint c{"add_experts", {}, {__builtin_FILE(), __builtin_LINE()}};
  if (of.biases)
    c.begin() << "its setting has biases; expected none, since experts and their router have no biases "
                 "(attention_half's qkv_biases are those of attention)";
  else
    c.begin() << "its setting has norms after each half; expected norms before, since the half with experts "
                 "has no other";
  t.refuse(c);
}
}  // namespace detail

/// x plus the output of experts for the norm of x.
/// Shapes: x (tokens, hidden); the result has the type of x.
/// Errors: RC210, also for a setting with biases or with norms after; RC258.
constexpr value add_experts(trace& t, value x, const experts_of_layer& e, const block_setting& of,
                            const layer_context& c) {
  detail::check_expert_setting(t, of);
  const int layers = of.layers;
  const dim hidden = t.of(x).shape[1];
  const bool spread = c.ep > 1;               // experts are sharded over ep
  const bool in_parts = spread && c.etp > 1;  // the columns of each expert are sharded over etp
  const dim shared{"shared_ffn", e.shared_ffn};
  const detail::expert_weights weights{dim{"experts", e.count * hidden.size, hidden.size, hidden.name},
                                       dim{"expert_ffn", e.ffn}, spread, in_parts};
  value n2 = as("n2", of.add_norm(t, x, mlp_names.norm, mlp_names.norm_shift));
  value logits = as("logits", linear(n2, t.parameter("router", {dim{"experts", e.count}, hidden}, {},
                                                     initial::normal, initial_std)));
  const expert_limit limit = e.limit(c.seq);
  const value bias = e.router.has_bias() ? bias_of_choice(t, "router.bias", dim{"experts", e.count}, e.picks,
                                                          e.router, c.loss_scale)
                                         : value{};
  // The gradient of the routing weights is a partial sum over tp if tp shards the experts' columns, and over
  // ep if the ep ranks have the same tokens. So the logits are replicated over these ranks first.
  value scores = logits;
  if (!spread) scores = enter_tp(logits, c);
  else if (c.repeats_tokens) scores = replicate(logits, axis::ep);
  const routing routed = route(scores, e.picks, e.router, bias);
  value pick_weights = as("pick_weights", routed.weights), chosen = as("chosen", routed.chosen);
  const arrangement slots = arrange(chosen, e.count, limit);
  as("places", slots.places);
  as("offsets", slots.offsets);
  detail::keep_own_statistics(logits, bias, e, chosen, slots.places, c.sequence_parallel && !spread, c);
  if (!spread) {
    value h2 = enter_tp(n2, c);
    value down = detail::swiglu_experts(t, as("rows", dispatch(h2, slots)), slots, weights, layers);
    value combined = as("combined", combine(down, pick_weights, slots));
    return x + leave_tp(e.shared_ffn ? combined + detail::shared_expert(t, h2, shared, layers) : combined, c);
  }
  value made = c.repeats_tokens ? detail::add_up_experts(t, n2, pick_weights, slots, weights, layers)
                                : detail::exchange_slots(t, n2, pick_weights, slots, weights, layers, e, c);
  value y = x + made;
  return e.shared_ffn ? y + leave_tp(detail::shared_expert(t, enter_tp(n2, c), shared, layers), c) : y;
}

/// Adds experts with an RMSNorm, in a model with `layers` layers.
constexpr value add_experts(trace& t, value x, const experts_of_layer& e, int layers, double norm_eps,
                            const layer_context& c) {
  return add_experts(t, x, e, {.layers = layers, .norm_eps = norm_eps}, c);
}

/// A block: attention and experts.
/// Shapes: x (tokens, hidden); the result has the type of x.
struct expert_block {
  static constexpr std::string_view name = "expert_block";
  attention_half attention;
  experts_of_layer experts;

  constexpr value forward(trace& t, value x, const layer_context& c) const {
    return add_experts(t, attention.add_to(t, x, c), experts, attention.of, c);
  }
};

}  // namespace rankc::models
