// SPDX-License-Identifier: Apache-2.0
// Llama: rotary positions, RMSNorm, SwiGLU, grouped-query attention, no biases.
// Source: Touvron et al. 2023; Grattafiori et al. 2024.
#pragma once
#include <rankc/models/layer.hpp>
#include <rankc/rules/values/model.hpp>

namespace rankc::models {

namespace llama_layers {

struct embedding {
  static constexpr std::string_view name = "embedding";
  parameter_handle table;
  constexpr value forward(trace& t, value ids, const layer_context& c) const {
    return leave_tp(as("embedded", rankc::embedding(ids, t.parameter(table))), c);
  }
};

/// x plus what SwiGLU makes of its norm: the second half of a block of so many `layers`.
constexpr value add_mlp(trace& t, value x, dim ffn, int layers, double norm_eps, const layer_context& c) {
  const dim hidden = t.of(x).shape[1];
  value n2 = as("n2", rms_norm(x, t.parameter("norm2", {hidden}, {}, initial::ones), norm_eps));
  value h2 = as("h2", enter_tp(n2, c));
  value gate = as("gate", column_parallel(t, h2, "w1", ffn)),
        up = as("up", column_parallel(t, h2, "w3", ffn));
  value act = as("act", swiglu(gate, up));
  value down = as("down", row_parallel(t, act, "w2", hidden, residual_std(layers)));
  return x + leave_tp(down, c);
}

/// x plus attention to its norm: the first half of a block.
struct attention_half {
  dim hidden, heads, kv_heads;
  int layers;
  double theta, norm_eps = default_norm_eps;
  rankc::rope_scaling rope_scaling{};

  constexpr value add_to(trace& t, value x, const layer_context& c) const {
    value n1 = as("n1", rms_norm(x, t.parameter("norm1", {hidden}, {}, initial::ones), norm_eps)),
          h1 = as("h1", enter_tp(n1, c));
    value q = as("q", rope(column_parallel(t, h1, "wq", heads), c.seq, theta, rope_scaling));
    value k = as("k", rope(column_parallel(t, h1, "wk", kv_heads), c.seq, theta, rope_scaling));
    value v = as("v", column_parallel(t, h1, "wv", kv_heads));
    value o = as("o", self_attention(q, k, v, c));
    value o_proj = as("o_proj", row_parallel(t, o, "wo", hidden, residual_std(layers)));
    return as("x_mid", x + leave_tp(o_proj, c));
  }
};

struct block {
  static constexpr std::string_view name = "block";
  attention_half attention;
  dim ffn;

  constexpr value forward(trace& t, value x, const layer_context& c) const {
    return add_mlp(t, attention.add_to(t, x, c), ffn, attention.layers, attention.norm_eps, c);
  }
};

struct head {
  static constexpr std::string_view name = "head";
  parameter_handle table;
  double norm_eps = default_norm_eps;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value gain = t.parameter("norm", {table.shape[1]}, {}, initial::ones);
    value out = t.parameter(table);
    value n = as("n", rms_norm(x, gain, norm_eps)), h = as("h", enter_tp(n, c));
    value logits = as("logits", linear(h, out));
    add_router_losses(t, c.routers, c.sequence_parallel, c.loss_scale);
    return cross_entropy(logits, c.targets, axis::tp, c.loss_scale);
  }
};

}  // namespace llama_layers

/// A Llama of any size. `vocab` may be padded; `vocab_used` (0: all) says how many tokens exist.
struct llama {
  static constexpr std::string_view family = "llama";
  int layers, hidden, heads, kv_heads, ffn, vocab;
  double theta = 500000;
  int vocab_used = 0;
  bool tied = false;
  double norm_eps = default_norm_eps;
  rankc::rope_scaling rope_scaling{};
  int head_dim = 0;  // 0: hidden / heads

  constexpr void check(report& out) const {
    check_sizes(
        out, {{"hidden", hidden}, {"heads", heads}, {"kv_heads", kv_heads}, {"ffn", ffn}, {"vocab", vocab}});
    check_theta(out, theta);
    check_rope_scaling(out, rope_scaling);
    check_norm_eps(out, norm_eps);
  }
  constexpr model_sizes sizes() const {
    return {.layers = layers,
            .hidden = hidden,
            .heads = heads,
            .kv_heads = kv_heads,
            .ffn = ffn,
            .vocab = vocab,
            .vocab_used = vocab_used,
            .tied_embeddings = tied,
            .rotary = true,
            .head_dim = head_dim};
  }
  constexpr auto stack() const {
    const int of_head = sizes().elements_of_head();
    const dim c{"hidden", hidden}, v{"vocab", vocab};
    const parameter_handle wte = token_table(v, c), out = tied ? wte : token_table(v, c, "lm_head");
    return sequential(
        llama_layers::embedding{wte},
        repeat{layers, llama_layers::block{{c, dim{"heads", heads * of_head, of_head, "head_dim"},
                                            dim{"kv_heads", kv_heads * of_head, of_head, "head_dim"}, layers,
                                            theta, norm_eps, rope_scaling},
                                           dim{"ffn", ffn}}},
        llama_layers::head{out, norm_eps});
  }
};

}  // namespace rankc::models
