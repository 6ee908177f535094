// SPDX-License-Identifier: Apache-2.0
// A custom block: Llama's, with queries and keys normalised in each head and a gate on the output of
// attention.
// Source: Henry et al. 2020; Qiu et al. 2025.
#pragma once
#include "01_gpt_one_rank.hpp"

namespace plans {

struct gated_block {
  static constexpr std::string_view name = "block";
  dim hidden, heads, ffn;
  int layers;

  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const dim head{"head_dim", heads.unit};
    value n1 = as("n1", rms_norm(x, t.parameter("norm1", {hidden}, {}, initial::ones))),
          h1 = as("h1", enter_tp(n1, c));
    value q_gain = t.parameter("q_norm", {head}, {}, initial::ones),
          k_gain = t.parameter("k_norm", {head}, {}, initial::ones);
    value q = as("q", rope(head_norm(column_parallel(t, h1, "wq", heads), q_gain), c.seq, 10000));
    value k = as("k", rope(head_norm(column_parallel(t, h1, "wk", heads), k_gain), c.seq, 10000));
    value v = as("v", column_parallel(t, h1, "wv", heads));
    value gate = as("gate", sigmoid(column_parallel(t, h1, "wg", heads)));
    value o = as("o", self_attention(q, k, v, c) * gate);
    value x_mid = as("x_mid", x + leave_tp(row_parallel(t, o, "wo", hidden, residual_std(layers)), c));

    value n2 = as("n2", rms_norm(x_mid, t.parameter("norm2", {hidden}, {}, initial::ones)));
    value h2 = as("h2", enter_tp(n2, c));
    value left = as("left", column_parallel(t, h2, "w1", ffn)),
          up = as("up", column_parallel(t, h2, "w3", ffn));
    value act = as("act", swiglu(left, up));
    return x_mid + leave_tp(row_parallel(t, act, "w2", hidden, residual_std(layers)), c);
  }
};

/// A model has a stack of layers and a check of its sizes.
struct gated_llama {
  int layers, hidden, heads, ffn, vocab;
  int vocab_used = 0;

  constexpr void check(report& out) const {
    check_sizes(out, {{"hidden", hidden}, {"heads", heads}, {"ffn", ffn}, {"vocab", vocab}});
  }
  constexpr auto stack() const {
    const dim features{"hidden", hidden}, words{"vocab", vocab},
        all_heads{"heads", hidden, hidden / heads, "head_dim"};
    const parameter_handle table = token_table(words, features);
    return sequential(models::embedding{table},
                      repeat{layers, gated_block{features, all_heads, dim{"ffn", ffn}, layers}},
                      models::head{table});
  }
};

inline constexpr plan gpt_gated{
    .model = gated_llama{.layers = 4, .hidden = 128, .heads = 4, .ffn = 352, .vocab = 256},
    .dims = parallel_dims{.world = 2, .tp = 2},
    .schedule = schedules::gpipe{.microbatches = 1},
    .recipe = byte_recipe,
    .cluster = clusters::cpu};
static_assert(valid<gpt_gated>);

}  // namespace plans
