// SPDX-License-Identifier: Apache-2.0
// The layers of a decoder: the embedding, a block of attention and an MLP, and the head. The built-in models
// configure them. A model of your own can combine them with other layers.
#pragma once
#include <rankc/models/layer.hpp>

namespace rankc::models {

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

/// The embedding of tokens times `factor`, with learned positions if `learned_positions`.
/// Shapes: ids (tokens); result (tokens, hidden).
struct embedding {
  static constexpr std::string_view name = "embedding";
  parameter_handle table;
  bool learned_positions = false;
  double factor = 1;
  constexpr value forward(trace& t, value ids, const layer_context& c) const {
    value words = t.parameter(table), positions{};
    if (learned_positions)
      positions =
          t.parameter("wpe", {dim{"positions", c.seq}, table.shape[1]}, {}, initial::normal, initial_std);
    value embedded = leave_tp(as("embedded", rankc::embedding(ids, words)), c);
    if (factor != 1) embedded = as("scaled", scale(embedded, factor));
    return learned_positions ? position(embedded, positions, c) : embedded;
  }
};

/// The norms of each half of a block: at its start, at its end before it is added to x, or both.
/// Source: Groeneveld et al. 2024 (OLMo 2: after); Gemma Team 2024 (Gemma 2: both).
enum class norm_place : unsigned char { before, after, both };

/// The names of the parameters that both halves of a block have, and of their values in generated text.
struct half_names {
  std::string_view norm, norm_shift, normed, entered;
  std::string_view weight, shift, sums;
  std::string_view post_norm, post_norm_shift, post_normed;
};
inline constexpr half_names attention_names{
    "norm1", "norm1.bias", "n1", "h1", "wo", "wo.bias", "o_proj", "post_norm1", "post_norm1.bias", "a1"};
inline constexpr half_names mlp_names{"norm2",      "norm2.bias",      "n2", "h2", "w2", "w2.bias", "down",
                                      "post_norm2", "post_norm2.bias", "a2"};

/// The settings shared by the two halves of a block.
struct block_setting {
  int layers;  // layers of the model
  double norm_eps = default_norm_eps;
  norm_kind norm = norm_kind::rms;
  bool biases = false;  // all linear layers of the block have biases
  norm_place norms = norm_place::before;

  /// A norm of x with new parameters.
  constexpr value add_norm(trace& t, value x, std::string_view gain, std::string_view shift) const {
    return apply_norm(x, declare_norm(t, norm, t.of(x).shape[1], gain, shift), norm_eps);
  }
  /// The norm at the start of a half, if it has one, then enter_tp.
  constexpr value enter(trace& t, value x, const half_names& names, const layer_context& c) const {
    if (norms != norm_place::after) x = as(names.normed, add_norm(t, x, names.norm, names.norm_shift));
    return as(names.entered, enter_tp(x, c));
  }
  /// A column-parallel linear layer, with a bias if `has_bias`.
  constexpr value column(trace& t, value x, std::string_view weight, std::string_view shift, dim out,
                         bool has_bias) const {
    value w = column_weight(t, x, weight, out);
    if (!has_bias) return linear(x, w);
    value b = t.parameter(shift, {out}, {{region_axis, out.name}}, initial::zeros);
    return bias(linear(x, w), b);
  }
  /// The row-parallel linear layer at the end of a half, then the norm after it, if the half has one.
  constexpr value leave(trace& t, value x, const half_names& names, dim hidden,
                        const layer_context& c) const {
    value sums = as(names.sums, row_parallel(t, x, names.weight, hidden, residual_std(layers)));
    const value shift = biases ? t.parameter(names.shift, {hidden}, {}, initial::zeros) : value{};
    value y = leave_tp(sums, c);
    if (biases) y = bias(y, shift);
    if (norms == norm_place::before) return y;
    return as(names.post_normed, add_norm(t, y, names.post_norm, names.post_norm_shift));
  }
};

/// The RMSNorm of queries and keys before rotary positions: of each head with one gain for all heads, or of
/// all heads together.
/// Source: Henry et al. 2020 (head); Groeneveld et al. 2024 (whole, in OLMo 2).
enum class qk_norm_kind : unsigned char { none, head, whole };

/// The first half of a block: x plus attention of x.
struct attention_half {
  dim hidden, heads, kv_heads;
  block_setting of;
  double theta = 0;  // base of rotary positions; 0: none
  rankc::rope_scaling rope_scaling{};
  qk_norm_kind qk_norm = qk_norm_kind::none;
  bool qkv_biases = false;  // q, k and v have biases without `of.biases`, too
  attention_setting setting{};
  bool has_sinks = false;  // each head has a sink
  int value_dim = 0;       // elements of a value head; 0: as many as a key head has

  constexpr value add_to(trace& t, value x, const layer_context& c) const {
    value h1 = of.enter(t, x, attention_names, c);
    const value q_gain = declare_gain(t, "q_norm", heads), k_gain = declare_gain(t, "k_norm", kv_heads);
    const value sinks = has_sinks ? declare_sinks(t) : value{};
    const bool has_bias = of.biases || qkv_biases;
    value q = as("q", turn(of.column(t, h1, "wq", "wq.bias", heads, has_bias), q_gain, c));
    value k = as("k", turn(of.column(t, h1, "wk", "wk.bias", kv_heads, has_bias), k_gain, c));
    value v = as("v", of.column(t, h1, "wv", "wv.bias", value_heads(), has_bias));
    value o = as("o", self_attention(q, k, v, c, setting, sinks));
    return as("x_mid", x + of.leave(t, o, attention_names, hidden, c));
  }

 private:
  constexpr dim value_heads() const {
    return value_dim ? dim{kv_heads.name, kv_heads.count() * value_dim, value_dim, "value_dim"} : kv_heads;
  }
  constexpr value declare_sinks(trace& t) const {
    return t.parameter("sinks", {dim{heads.name, heads.count()}}, {{region_axis, heads.name}},
                       initial::normal, initial_std);
  }
  /// The gain of queries or keys. Every tp rank has the gain of a head, and its gradient is a partial sum
  /// from the rank's heads. The gain of all heads is sharded as they are.
  constexpr value declare_gain(trace& t, std::string_view gain, dim all) const {
    if (qk_norm == qk_norm_kind::none) return {};
    if (qk_norm == qk_norm_kind::whole)
      return t.parameter(gain, {all}, {{region_axis, all.name}}, initial::ones);
    return t.parameter(gain, {dim{"head_dim", all.unit}}, {}, initial::ones);
  }
  constexpr value turn(value x, value gain, const layer_context& c) const {
    if (qk_norm == qk_norm_kind::head) x = head_norm(x, gain, of.norm_eps);
    if (qk_norm == qk_norm_kind::whole) x = rms_norm(x, gain, of.norm_eps);
    return theta != 0 ? rope(x, c.seq, theta, rope_scaling) : x;
  }
};

/// The activation of an MLP: silu(gate) * up, gelu(up), or gelu(gate) * up.
enum class activation : unsigned char { swiglu, gelu, geglu };

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
    value h2 = of.enter(t, middle, mlp_names, c);
    value act = by == activation::gelu ? add_gelu(t, h2) : add_gated(t, h2);
    return middle + of.leave(t, act, mlp_names, attention.hidden, c);
  }

 private:
  constexpr value up_to_ffn(trace& t, value h, std::string_view weight, std::string_view shift) const {
    return attention.of.column(t, h, weight, shift, ffn, attention.of.biases);
  }
  constexpr value add_gelu(trace& t, value h) const {
    value up = as("up", up_to_ffn(t, h, "w1", "w1.bias"));
    return as("act", gelu(up));
  }
  constexpr value add_gated(trace& t, value h) const {
    value gate = as("gate", up_to_ffn(t, h, "w1", "w1.bias")),
          up = as("up", up_to_ffn(t, h, "w3", "w3.bias"));
    if (by == activation::swiglu) return as("act", swiglu(gate, up));
    const value gated = as("gated", gelu(gate));
    return as("act", gated * up);
  }
};

/// The last norm, the logits and the loss. The first `softmax_rows` rows of the table take part in the
/// softmax of the loss, or all if it is 0.
/// Shapes: x (tokens, hidden); the result is a scalar.
struct head {
  static constexpr std::string_view name = "head";
  parameter_handle table;
  double norm_eps = default_norm_eps;
  norm_kind norm = norm_kind::rms;
  int softmax_rows = 0;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const norm_parameters weights = declare_norm(t, norm, table.shape[1], "norm", "norm.bias");
    value out = t.parameter(table);
    value n = as("n", apply_norm(x, weights, norm_eps)), h = as("h", enter_tp(n, c));
    value logits = as("logits", linear(h, out));
    if (softmax_rows > 0) logits = as("masked", mask_padding(logits, softmax_rows));
    add_router_losses(t, c.routers, c.sequence_parallel, c.loss_scale);
    return cross_entropy(logits, c);
  }
};

}  // namespace rankc::models
