// SPDX-License-Identifier: Apache-2.0
// Models with a loss that ignores some labels.
#pragma once
#include <rankc/rankc.hpp>

namespace masked {

using namespace rankc;

/// The model of the oracles `masked` and `masked_sparse`.
constexpr models::llama of_oracle(bool tied) {
  return {.layers = 2,
          .hidden = 32,
          .heads = 4,
          .kv_heads = 2,
          .ffn = 48,
          .vocab = 96,
          .theta = 10000,
          .tied = tied,
          .norm_eps = 1e-6};
}

inline constexpr models::llama four_layers{
    .layers = 4, .hidden = 16, .heads = 4, .kv_heads = 2, .ffn = 16, .vocab = 32};

/// A model with sizes that are multiples of 16 on two ranks of tp, as fp8 needs.
inline constexpr models::llama wide{
    .layers = 2, .hidden = 64, .heads = 4, .kv_heads = 2, .ffn = 64, .vocab = 32};

inline constexpr models::qwen3_moe experts{.layers = 4,
                                           .hidden = 12,
                                           .heads = 4,
                                           .kv_heads = 2,
                                           .head_dim = 4,
                                           .experts = 4,
                                           .top_k = 2,
                                           .expert_ffn = 4,
                                           .vocab = 32,
                                           .ffn = 8,
                                           .mlp_only_layers = {0, 2},
                                           .norm_topk_prob = false,
                                           .router_losses = {.balance = 0.01, .z = 0.001}};

/// A head with a second loss of the same labels, as if it predicted them from other features.
struct two_losses {
  static constexpr std::string_view name = "head";
  parameter_handle table;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const value entered = enter_tp(x, c), words = t.parameter(table);
    add_loss(cross_entropy(linear(gelu(entered), words), c, 0.3));
    return cross_entropy(linear(entered, words), c);
  }
};

struct two_heads {
  int vocab = 32, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const {
    const dim features{"hidden", 12}, heads{"heads", 12, 3, "head_dim"};
    const parameter_handle table{
        "wte", {dim{"vocab", 32}, features}, {{region_axis, "vocab"}}, initial::normal, 0.5};
    const models::block block{{features, heads, heads, {.layers = 4, .norm_eps = 0.1}}, dim{"ffn", 16}};
    return sequential(models::embedding{table, true}, repeat{4, block}, two_losses{table});
  }
};

}  // namespace masked
