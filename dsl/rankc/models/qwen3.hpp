// SPDX-License-Identifier: Apache-2.0
// Qwen3: a Llama whose queries and keys are normalised in each head before they turn, with heads of a size of
// their own.
// Source: Qwen Team 2025; transformers, models/qwen3.
#pragma once
#include <rankc/models/llama.hpp>

namespace rankc::models {

namespace qwen3_layers {

/// x plus attention to its norm: the first half of a block.
struct attention_half {
  dim hidden, heads, kv_heads;
  int layers;
  double theta, norm_eps = default_norm_eps;
  rankc::rope_scaling rope_scaling{};

  constexpr value add_to(trace& t, value x, const layer_context& c) const {
    const dim head{"head_dim", heads.unit};
    value n1 = as("n1", rms_norm(x, t.parameter("norm1", {hidden}, {}, initial::ones), norm_eps)),
          h1 = as("h1", enter_tp(n1, c));
    // Every rank of tp has the gains, and of their gradients the part of its heads.
    value q_gain = t.parameter("q_norm", {head}, {}, initial::ones),
          k_gain = t.parameter("k_norm", {head}, {}, initial::ones);
    value q = as("q", rope(head_norm(column_parallel(t, h1, "wq", heads), q_gain, norm_eps), c.seq, theta,
                           rope_scaling));
    value k = as("k", rope(head_norm(column_parallel(t, h1, "wk", kv_heads), k_gain, norm_eps), c.seq, theta,
                           rope_scaling));
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
    return llama_layers::add_mlp(t, attention.add_to(t, x, c), ffn, attention.layers, attention.norm_eps, c);
  }
};

}  // namespace qwen3_layers

/// A dense Qwen3 of any size. `vocab` may be padded; `vocab_used` (0: all) says how many tokens exist.
struct qwen3 {
  static constexpr std::string_view family = "qwen3";
  int layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
  double theta = 1000000;
  int vocab_used = 0;
  bool tied = false;
  double norm_eps = 1e-6;
  rankc::rope_scaling rope_scaling{};

  constexpr void check(report& out) const {
    check_sizes(out, {{"hidden", hidden},
                      {"heads", heads},
                      {"kv_heads", kv_heads},
                      {"head_dim", head_dim},
                      {"ffn", ffn},
                      {"vocab", vocab}});
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
    const dim c{"hidden", hidden}, v{"vocab", vocab};
    const parameter_handle wte = token_table(v, c), out = tied ? wte : token_table(v, c, "lm_head");
    return sequential(
        llama_layers::embedding{wte},
        repeat{layers, qwen3_layers::block{{c, dim{"heads", heads * head_dim, head_dim, "head_dim"},
                                            dim{"kv_heads", kv_heads * head_dim, head_dim, "head_dim"},
                                            layers, theta, norm_eps, rope_scaling},
                                           dim{"ffn", ffn}}},
        llama_layers::head{out, norm_eps});
  }
};

}  // namespace rankc::models
