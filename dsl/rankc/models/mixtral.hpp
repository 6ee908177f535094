// SPDX-License-Identifier: Apache-2.0
// Mixtral: a Llama whose layers have experts instead of an MLP.
// Source: Jiang et al. 2024; transformers, models/mixtral.
#pragma once
#include <rankc/models/experts.hpp>
#include <rankc/models/llama.hpp>

namespace rankc::models {

namespace mixtral_layers {

struct block {
  static constexpr std::string_view name = "expert_block";
  llama_layers::attention_half attention;
  experts_of_layer experts;

  constexpr value forward(trace& t, value x, const layer_context& c) const {
    return add_experts(t, attention.add_to(t, x, c), experts, attention.layers, attention.norm_eps, c);
  }
};

}  // namespace mixtral_layers

/// A Mixtral of any size. `vocab` may be padded; `vocab_used` (0: all) says how many tokens exist.
struct mixtral {
  static constexpr std::string_view family = "mixtral";
  int layers, hidden, heads, kv_heads, experts, top_k, expert_ffn, vocab;
  double theta = 1000000;
  int vocab_used = 0;
  bool tied = false;
  double norm_eps = default_norm_eps;
  rankc::rope_scaling rope_scaling{};
  int head_dim = 0;  // 0: hidden / heads
  rankc::router_losses router_losses{};
  double capacity = 0;     // how many picks an expert takes, as experts_of_layer has it
  int capacity_group = 0;  // of so many positions of a sequence; 0: of all
  rankc::overflow overflow = rankc::overflow::drop;  // where picks find their expert full
  bool expert_load =
      false;  // metrics say how evenly experts were chosen, also where no loss or capacity counts choices

  constexpr void check(report& out) const {
    check_sizes(out, {{"hidden", hidden},
                      {"heads", heads},
                      {"kv_heads", kv_heads},
                      {"experts", experts},
                      {"top_k", top_k},
                      {"expert_ffn", expert_ffn},
                      {"vocab", vocab}});
    check_theta(out, theta);
    check_rope_scaling(out, rope_scaling);
    check_norm_eps(out, norm_eps);
    check_model_routers(out, routers());
    check_capacity(out, capacity, capacity_group, routers());
  }
  constexpr model_routers routers() const {
    return {layers, experts, top_k, router_losses, capacity != 0, overflow, expert_load};
  }
  constexpr model_sizes sizes() const {
    return {.layers = layers,
            .hidden = hidden,
            .heads = heads,
            .kv_heads = kv_heads,
            .ffn = expert_ffn,
            .vocab = vocab,
            .experts = experts,
            .top_k = top_k,
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
        repeat{layers, mixtral_layers::block{{c, dim{"heads", heads * of_head, of_head, "head_dim"},
                                              dim{"kv_heads", kv_heads * of_head, of_head, "head_dim"},
                                              layers, theta, norm_eps, rope_scaling},
                                             {.count = experts,
                                              .picks = top_k,
                                              .ffn = expert_ffn,
                                              .capacity = capacity,
                                              .capacity_group = capacity_group}}},
        llama_layers::head{out, norm_eps});
  }
};

}  // namespace rankc::models
