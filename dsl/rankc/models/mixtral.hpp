// SPDX-License-Identifier: Apache-2.0
// Mixtral: a Llama with experts instead of the MLP in every layer.
// Source: Jiang et al. 2024; transformers, models/mixtral.
#pragma once
#include <rankc/models/llama_format.hpp>

namespace rankc::models {

constexpr std::vector<hugging_face_tensor> mixtral_expert_tensors() {
  return {{"layers.#.router", "model.layers.#.block_sparse_moe.gate.weight"},
          {"layers.#.experts.gate", "model.layers.#.block_sparse_moe.experts.@.w1.weight", true},
          {"layers.#.experts.up", "model.layers.#.block_sparse_moe.experts.@.w3.weight", true},
          {"layers.#.experts.down", "model.layers.#.block_sparse_moe.experts.@.w2.weight"}};
}

/// A Mixtral of any size.
/// Units: vocab may be padded; vocab_used is the number of tokens in use (0: all).
/// Errors: RC202 to RC209, RC215, RC219, RC238, RC250, RC251, RC256, RC258.
struct mixtral {
  static constexpr std::string_view family = "mixtral";
  int layers, hidden, heads, kv_heads, experts, top_k, expert_ffn, vocab;
  double theta = 1000000;
  int vocab_used = 0;
  bool masks_padding = false;
  bool tied = false;
  double norm_eps = default_norm_eps;
  rankc::rope_scaling rope_scaling{};
  int head_dim = 0;  // 0: hidden / heads
  rankc::router_losses router_losses{};
  double capacity = 0;                               // as in experts_of_layer
  int capacity_group = 0;                            // as in experts_of_layer
  rankc::overflow overflow = rankc::overflow::drop;  // if an expert is at capacity
  bool expert_load = false;  // metrics show the experts' load even without a router loss or a capacity

  constexpr void check(report& out) const { check_llama(out, *this); }
  constexpr model_routers routers() const { return declared_routers(*this, layers); }
  constexpr model_sizes sizes() const { return llama_sizes(*this); }
  constexpr decoder describe() const {
    decoder d = llama_decoder(*this);
    d.experts = declared_experts(*this);
    d.routers = routers();
    return d;
  }
  constexpr auto stack() const {
    const decoder d = describe();
    return sequential(d.embedding(), repeat{layers, d.expert_block()}, d.head());
  }
  constexpr hugging_face_format hugging_face() const {
    const decoder d = describe();
    return {.model_type = "mixtral",
            .architecture = "MixtralForCausalLM",
            .tensors = join(llama_attention_tensors(), mixtral_expert_tensors()),
            .fields =
                join(llama_fields(d, {.norm_eps = 1e-5, .theta = 1e6}), {kv_heads_field(d, 8),
                                                                         head_dim_field(d),
                                                                         {"num_local_experts", experts, 8},
                                                                         {"num_experts_per_tok", top_k, 2},
                                                                         {"sliding_window", nullptr},
                                                                         {"router_jitter_noise", 0.0, 0.0}}),
            .buffers = llama_buffers(),
            .experts = experts,
            .balance = balance_of(router_losses)};
  }
};

}  // namespace rankc::models
