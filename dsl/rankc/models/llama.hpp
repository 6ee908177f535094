// SPDX-License-Identifier: Apache-2.0
// Llama: rotary positions, RMSNorm, SwiGLU, grouped-query attention, no biases.
// Source: Touvron et al. 2023; Grattafiori et al. 2024.
#pragma once
#include <rankc/models/layer.hpp>
#include <rankc/rules/model.hpp>

namespace rankc::models {

namespace llama_layers {

struct embedding {
  static constexpr std::string_view name = "embedding";
  dim vocab, hidden;
  constexpr value forward(trace& t, value ids, const layer_context& c) const {
    value table = t.parameter("wte", {vocab, hidden}, {{axis::tp, "vocab"}}, initial::normal, 0.02);
    return leave_tp(rankc::embedding(ids, table), c);
  }
};

struct block {
  static constexpr std::string_view name = "block";
  dim hidden, heads, kv_heads, ffn;
  int layers;
  double theta;

  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = enter_tp(rms_norm(x, t.parameter("norm1", {hidden}, {}, initial::ones)), c);
    value q = rope(column_parallel(t, h, "wq", heads), c.seq, theta);
    value k = rope(column_parallel(t, h, "wk", kv_heads), c.seq, theta);
    value v = column_parallel(t, h, "wv", kv_heads);
    x = x + leave_tp(row_parallel(t, self_attention(q, k, v, c), "wo", hidden, residual_std(layers)), c);

    h = enter_tp(rms_norm(x, t.parameter("norm2", {hidden}, {}, initial::ones)), c);
    value gate = column_parallel(t, h, "w1", ffn), up = column_parallel(t, h, "w3", ffn);
    return x + leave_tp(row_parallel(t, swiglu(gate, up), "w2", hidden, residual_std(layers)), c);
  }
};

struct head {
  static constexpr std::string_view name = "head";
  dim vocab, hidden;
  bool tied;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value gain = t.parameter("norm", {hidden}, {}, initial::ones);
    value out = tied ? t.tied("wte", {vocab, hidden}, {{axis::tp, "vocab"}})
                      : t.parameter("lm_head", {vocab, hidden}, {{axis::tp, "vocab"}}, initial::normal, 0.02);
    value logits = linear(enter_tp(rms_norm(x, gain), c), out);
    return cross_entropy(logits, c.targets, axis::tp, c.loss_scale);
  }
};

}  // namespace llama_layers

/// A Llama of any size. `vocab` may be padded; `vocab_used` (0: all) says how many tokens exist.
struct llama {
  int layers, hidden, heads, kv_heads, ffn, vocab;
  double theta = 500000;
  int vocab_used = 0;
  bool tied = false;

  constexpr void check(report& out) const {
    check_sizes(out, {{"hidden", hidden}, {"heads", heads}, {"kv_heads", kv_heads}, {"ffn", ffn}, {"vocab", vocab}});
    check_theta(out, theta);
  }
  constexpr model_sizes sizes() const {
    return {.layers = layers, .hidden = hidden, .heads = heads, .kv_heads = kv_heads, .ffn = ffn, .vocab = vocab,
            .vocab_used = vocab_used, .tied_embeddings = tied, .rotary = true};
  }
  constexpr auto stack() const {
    const int head_dim = hidden / heads;
    const dim c{"hidden", hidden}, v{"vocab", vocab};
    return sequential(
        llama_layers::embedding{v, c},
        repeat{layers, llama_layers::block{c, dim{"heads", hidden, head_dim, "head_dim"},
                                           dim{"kv_heads", kv_heads * head_dim, head_dim, "head_dim"}, dim{"ffn", ffn},
                                           layers, theta}},
        llama_layers::head{v, c, tied});
  }
};

}  // namespace rankc::models
