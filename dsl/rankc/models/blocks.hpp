// SPDX-License-Identifier: Apache-2.0
// The layers of a decoder: the embedding, a block of attention and an MLP, and the head. The built-in models
// configure them. A model of your own can combine them with other layers.
#pragma once
#include <rankc/models/layer.hpp>

namespace rankc::models {

inline constexpr double initial_std = 0.02;  // of all weights except those at the end of a residual branch

enum class norm_kind : unsigned char { rms, layer };

/// The parameters of a norm. Only a LayerNorm has a shift.
struct norm_parameters {
  value gain, shift{};
};
constexpr norm_parameters declare_norm(trace& t, norm_kind kind, dim features, std::string_view gain,
                                       std::string_view shift) {
  norm_parameters p{t.parameter(gain, {features}, {}, initial::ones)};
  if (kind == norm_kind::layer) p.shift = t.parameter(shift, {features}, {}, initial::zeros);
  return p;
}
constexpr value apply_norm(value x, const norm_parameters& p, double eps) {
  return p.shift.in ? layer_norm(x, p.gain, p.shift, eps) : rms_norm(x, p.gain, eps);
}

struct embedding {
  static constexpr std::string_view name = "embedding";
  parameter_handle table;
  bool learned_positions = false;
  constexpr value forward(trace& t, value ids, const layer_context& c) const {
    value words = t.parameter(table), positions{};
    if (learned_positions)
      positions =
          t.parameter("wpe", {dim{"positions", c.seq}, table.shape[1]}, {}, initial::normal, initial_std);
    value embedded = leave_tp(as("embedded", rankc::embedding(ids, words)), c);
    return learned_positions ? position(embedded, positions, c) : embedded;
  }
};

/// The settings shared by the two halves of a block.
struct block_setting {
  int layers;  // layers of the model
  double norm_eps = default_norm_eps;
  norm_kind norm = norm_kind::rms;
  bool biases = false;

  /// The norm at the start of a half, then enter_tp.
  constexpr value enter(trace& t, value x, std::string_view gain, std::string_view shift, std::string_view n,
                        std::string_view h, const layer_context& c) const {
    const dim hidden = t.of(x).shape[1];
    value normed = as(n, apply_norm(x, declare_norm(t, norm, hidden, gain, shift), norm_eps));
    return as(h, enter_tp(normed, c));
  }
  /// A column-parallel linear layer, with a bias if the block has biases.
  constexpr value column(trace& t, value x, std::string_view weight, std::string_view shift, dim out) const {
    const dim in = t.of(x).shape[1];
    value w = t.parameter(weight, {out, in}, {{region_axis, out.name}}, initial::normal, initial_std);
    if (!biases) return linear(x, w);
    value b = t.parameter(shift, {out}, {{region_axis, out.name}}, initial::zeros);
    return bias(linear(x, w), b);
  }
  /// The row-parallel linear layer at the end of a half. `name` names its partial sums in generated text.
  constexpr value leave(trace& t, value x, std::string_view weight, std::string_view shift,
                        std::string_view name, dim hidden, const layer_context& c) const {
    value sums = as(name, row_parallel(t, x, weight, hidden, residual_std(layers)));
    if (!biases) return leave_tp(sums, c);
    value b = t.parameter(shift, {hidden}, {}, initial::zeros);
    return bias(leave_tp(sums, c), b);
  }
};

/// The first half of a block: x plus attention of its norm.
struct attention_half {
  dim hidden, heads, kv_heads;
  block_setting of;
  double theta = 0;  // base of rotary positions; 0: none
  rankc::rope_scaling rope_scaling{};
  bool head_norms = false;  // RMSNorm of each head of q and k before rotary positions
  attention_setting setting{};

  constexpr value add_to(trace& t, value x, const layer_context& c) const {
    value h1 = of.enter(t, x, "norm1", "norm1.bias", "n1", "h1", c);
    // Every tp rank has the whole gains. Their gradients are partial sums, from the rank's heads.
    value q_gain{}, k_gain{};
    if (head_norms) {
      const dim head{"head_dim", heads.unit};
      q_gain = t.parameter("q_norm", {head}, {}, initial::ones);
      k_gain = t.parameter("k_norm", {head}, {}, initial::ones);
    }
    value q = as("q", turn(of.column(t, h1, "wq", "wq.bias", heads), q_gain, c));
    value k = as("k", turn(of.column(t, h1, "wk", "wk.bias", kv_heads), k_gain, c));
    value v = as("v", of.column(t, h1, "wv", "wv.bias", kv_heads));
    value o = as("o", self_attention(q, k, v, c, setting));
    return as("x_mid", x + of.leave(t, o, "wo", "wo.bias", "o_proj", hidden, c));
  }

 private:
  constexpr value turn(value x, value gain, const layer_context& c) const {
    if (head_norms) x = head_norm(x, gain, of.norm_eps);
    return theta != 0 ? rope(x, c.seq, theta, rope_scaling) : x;
  }
};

enum class activation : unsigned char { swiglu, gelu };

/// A block: attention and an MLP.
/// Shapes: x (tokens, hidden); the result has the type of x.
struct block {
  static constexpr std::string_view name = "block";
  attention_half attention;
  dim ffn;
  activation by = activation::swiglu;

  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const block_setting& of = attention.of;
    value middle = attention.add_to(t, x, c);
    value h2 = of.enter(t, middle, "norm2", "norm2.bias", "n2", "h2", c);
    value act = by == activation::gelu ? add_gelu(t, h2) : add_swiglu(t, h2);
    return middle + of.leave(t, act, "w2", "w2.bias", "down", attention.hidden, c);
  }

 private:
  constexpr value add_gelu(trace& t, value h) const {
    value up = as("up", attention.of.column(t, h, "w1", "w1.bias", ffn));
    return as("act", gelu(up));
  }
  constexpr value add_swiglu(trace& t, value h) const {
    value gate = as("gate", attention.of.column(t, h, "w1", "w1.bias", ffn)),
          up = as("up", attention.of.column(t, h, "w3", "w3.bias", ffn));
    return as("act", swiglu(gate, up));
  }
};

/// The last norm, the logits and the loss.
/// Shapes: x (tokens, hidden); the result is a scalar.
struct head {
  static constexpr std::string_view name = "head";
  parameter_handle table;
  double norm_eps = default_norm_eps;
  norm_kind norm = norm_kind::rms;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const norm_parameters weights = declare_norm(t, norm, table.shape[1], "norm", "norm.bias");
    value out = t.parameter(table);
    value n = as("n", apply_norm(x, weights, norm_eps)), h = as("h", enter_tp(n, c));
    value logits = as("logits", linear(h, out));
    add_router_losses(t, c.routers, c.sequence_parallel, c.loss_scale);
    return cross_entropy(logits, c.targets, region_axis, c.loss_scale);
  }
};

}  // namespace rankc::models
