// SPDX-License-Identifier: Apache-2.0
// GPT-2: learned positions, LayerNorm, biases, GELU, multi-head attention, a tied head.
// Source: Radford et al. 2019; names and padding of the vocabulary as in nanoGPT.
#pragma once
#include <rankc/models/layer.hpp>
#include <rankc/rules/values/model.hpp>

namespace rankc::models {

namespace gpt2_layers {

struct embedding {
  static constexpr std::string_view name = "embedding";
  parameter_handle table;
  constexpr value forward(trace& t, value ids, const layer_context& c) const {
    value words = t.parameter(table);
    value positions =
        t.parameter("wpe", {dim{"positions", c.seq}, table.shape[1]}, {}, initial::normal, 0.02);
    value embedded = as("embedded", rankc::embedding(ids, words));
    return position(leave_tp(embedded, c), positions, c);
  }
};

struct block {
  static constexpr std::string_view name = "block";
  dim hidden, heads, ffn;
  int layers;
  double norm_eps = default_norm_eps;

  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value n1 = as("n1", norm(t, x, "norm1", "norm1.bias")), h1 = as("h1", enter_tp(n1, c));
    value q = as("q", column(t, h1, "wq", "wq.bias", heads)),
          k = as("k", column(t, h1, "wk", "wk.bias", heads)),
          v = as("v", column(t, h1, "wv", "wv.bias", heads));
    value o = as("o", self_attention(q, k, v, c));
    value o_proj = as("o_proj", row(t, o, "wo", heads));
    value x_mid = as("x_mid", x + leave(t, o_proj, "wo.bias", c));

    value n2 = as("n2", norm(t, x_mid, "norm2", "norm2.bias")), h2 = as("h2", enter_tp(n2, c));
    value up = as("up", column(t, h2, "w1", "w1.bias", ffn)), act = as("act", gelu(up));
    value down = as("down", row(t, act, "w2", ffn));
    return x_mid + leave(t, down, "w2.bias", c);
  }

 private:
  constexpr value norm(trace& t, value x, std::string_view gain, std::string_view shift) const {
    value g = t.parameter(gain, {hidden}, {}, initial::ones);
    value b = t.parameter(shift, {hidden}, {}, initial::zeros);
    return layer_norm(x, g, b, norm_eps);
  }
  constexpr value column(trace& t, value x, std::string_view name, std::string_view shift, dim out) const {
    value w = t.parameter(name, {out, hidden}, {{axis::tp, out.name}}, initial::normal, 0.02);
    value b = t.parameter(shift, {out}, {{axis::tp, out.name}}, initial::zeros);
    return bias(linear(x, w), b);
  }
  constexpr value row(trace& t, value x, std::string_view name, dim in) const {
    return linear(
        x, t.parameter(name, {hidden, in}, {{axis::tp, in.name}}, initial::normal, residual_std(layers)));
  }
  constexpr value leave(trace& t, value x, std::string_view shift, const layer_context& c) const {
    value b = t.parameter(shift, {hidden}, {}, initial::zeros);
    return bias(leave_tp(x, c), b);
  }
};

struct head {
  static constexpr std::string_view name = "head";
  parameter_handle table;
  double norm_eps = default_norm_eps;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value gain = t.parameter("norm", {table.shape[1]}, {}, initial::ones);
    value shift = t.parameter("norm.bias", {table.shape[1]}, {}, initial::zeros);
    value out = t.parameter(table);
    value n = as("n", layer_norm(x, gain, shift, norm_eps)), h = as("h", enter_tp(n, c));
    value logits = as("logits", linear(h, out));
    return cross_entropy(logits, c.targets, axis::tp, c.loss_scale);
  }
};

}  // namespace gpt2_layers

/// A GPT-2 of any size. `vocab` may be padded; `vocab_used` (0: all) says how many tokens exist.
struct gpt2 {
  static constexpr std::string_view family = "gpt2";
  int layers, hidden, heads, ffn, vocab;
  int vocab_used = 0;
  bool tied = true;
  double norm_eps = default_norm_eps;

  constexpr void check(report& out) const {
    check_sizes(out, {{"hidden", hidden}, {"heads", heads}, {"ffn", ffn}, {"vocab", vocab}});
    check_norm_eps(out, norm_eps);
  }
  constexpr model_sizes sizes() const {
    return {.layers = layers,
            .hidden = hidden,
            .heads = heads,
            .ffn = ffn,
            .vocab = vocab,
            .vocab_used = vocab_used,
            .tied_embeddings = tied};
  }
  constexpr auto stack() const {
    const dim c{"hidden", hidden}, v{"vocab", vocab};
    const parameter_handle wte = token_table(v, c), out = tied ? wte : token_table(v, c, "lm_head");
    return sequential(gpt2_layers::embedding{wte},
                      repeat{layers, gpt2_layers::block{c, dim{"heads", hidden, hidden / heads, "head_dim"},
                                                        dim{"ffn", ffn}, layers, norm_eps}},
                      gpt2_layers::head{out, norm_eps});
  }
};

}  // namespace rankc::models
