// SPDX-License-Identifier: Apache-2.0
// Multi-head latent attention: queries, keys and values are made from normalised rows of low rank, and rotary
// positions turn a part of each head. Here each head has a separate rotary key, made from the latent row, and
// a value head has the size of a key head. In DeepSeek's models all heads share one rotary key, made from x.
// Source: DeepSeek-AI 2024 (DeepSeek-V2).
#pragma once
#include "01_gpt_one_rank.hpp"

namespace plans {

struct latent_block {
  static constexpr std::string_view name = "block";
  dim hidden, heads, plain, turned, of_q, of_kv, ffn;  // a head has plain and turned elements
  int layers;

  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value n1 = as("n1", rms_norm(x, t.parameter("norm1", {hidden}, {}, initial::ones)));
    value to_q = as("to_q", enter_tp(latent(t, n1, "wq_down", "q_norm", of_q), c)),
          to_kv = as("to_kv", enter_tp(latent(t, n1, "wkv_down", "kv_norm", of_kv), c));
    const auto [q_plain, q_turned] = split(column_parallel(t, to_q, "wq_up", heads), plain, turned);
    const auto [k_plain, k_turned] = split(column_parallel(t, to_kv, "wk_up", heads), plain, turned);
    value q = as("q", concat(q_plain, rope(q_turned, c.seq, 10000), heads)),
          k = as("k", concat(k_plain, rope(k_turned, c.seq, 10000), heads)),
          v = as("v", column_parallel(t, to_kv, "wv_up", heads));
    value o = as("o", self_attention(q, k, v, c));
    value x_mid = as("x_mid", x + leave_tp(row_parallel(t, o, "wo", hidden, residual_std(layers)), c));

    value n2 = as("n2", rms_norm(x_mid, t.parameter("norm2", {hidden}, {}, initial::ones)));
    value h2 = as("h2", enter_tp(n2, c));
    value gate = as("gate", column_parallel(t, h2, "w1", ffn)),
          up = as("up", column_parallel(t, h2, "w3", ffn));
    value act = as("act", swiglu(gate, up));
    return x_mid + leave_tp(row_parallel(t, act, "w2", hidden, residual_std(layers)), c);
  }

 private:
  /// Normalised rows of low rank. Every tp rank has the rows of all tokens or, with sequence parallelism,
  /// those of the rank's tokens.
  static constexpr value latent(trace& t, value h, std::string_view weight, std::string_view gain, dim rank) {
    value w = t.parameter(weight, {rank, t.of(h).shape[1]}, {}, initial::normal, 0.02);
    value y = linear(h, w);
    return rms_norm(y, t.parameter(gain, {rank}, {}, initial::ones));
  }
};

struct latent_gpt {
  int layers, hidden, heads, plain, turned, of_q, of_kv, ffn, vocab;  // plain, turned: elements of a head
  int vocab_used = 0;

  constexpr void check(report& out) const {
    check_sizes(out,
                {{"hidden", hidden}, {"heads", heads}, {"plain", plain}, {"turned", turned}, {"ffn", ffn}});
    check_sizes(out, {{"of_q", of_q}, {"of_kv", of_kv}, {"vocab", vocab}});
  }
  constexpr auto stack() const {
    const dim features{"hidden", hidden}, words{"vocab", vocab};
    const auto in_heads = [&](std::string_view name, int unit, std::string_view unit_name) {
      return dim{name, heads * unit, unit, unit_name};
    };
    const dim all = in_heads("heads", plain + turned, "head_dim"),
              kept = in_heads("plain", plain, "plain_dim"), rotary = in_heads("turned", turned, "turned_dim");
    const latent_block block{features,        all,   kept, rotary, dim{"of_q", of_q}, dim{"of_kv", of_kv},
                             dim{"ffn", ffn}, layers};
    const parameter_handle table = token_table(words, features);
    return sequential(models::embedding{table}, repeat{layers, block}, models::head{table});
  }
};

inline constexpr latent_gpt byte_latent{.layers = 4,
                                        .hidden = 128,
                                        .heads = 4,
                                        .plain = 16,
                                        .turned = 16,
                                        .of_q = 48,
                                        .of_kv = 32,
                                        .ffn = 352,
                                        .vocab = 256};

inline constexpr plan gpt_latent{.model = byte_latent,
                                 .dims = parallel_dims{.world = 2, .tp = 2, .sequence_parallel = true},
                                 .schedule = schedules::gpipe{.microbatches = 1},
                                 .recipe = byte_recipe,
                                 .cluster = clusters::cpu};
static_assert(valid<gpt_latent>);

}  // namespace plans
