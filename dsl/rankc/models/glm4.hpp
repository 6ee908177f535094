// SPDX-License-Identifier: Apache-2.0
// GLM-4: a Llama with norms before and after each half of a block, biases of q, k and v, and positions that
// turn half of each head, in pairs of neighbours.
// Source: Team GLM 2024; transformers, models/glm4.
#pragma once
#include <rankc/models/llama_format.hpp>

namespace rankc::models {

/// A GLM-4 of any size.
/// Units: rotary_share of the elements of a head, which turn; vocab may be padded; vocab_used is the number
/// of tokens in use (0: all).
/// Errors: RC202 to RC209, RC215, RC219, RC238, RC250, RC251.
struct glm4 {
  static constexpr std::string_view family = "glm4";
  int layers, hidden, heads, kv_heads, ffn, vocab;
  double theta = 10000;
  int vocab_used = 0;
  bool masks_padding = false;
  bool tied = false;
  double norm_eps = 1.5625e-7;
  rankc::rope_scaling rope_scaling{};
  int head_dim = 0;  // 0: hidden / heads
  double rotary_share = 0.5;
  bool qkv_biases = true;

  constexpr void check(report& out) const { check_llama(out, *this); }
  constexpr model_sizes sizes() const { return llama_sizes(*this); }
  constexpr decoder describe() const {
    decoder d = llama_decoder(*this);
    d.rope_scaling.share = rotary_share;
    d.norms = norm_place::both;
    d.qkv_biases = qkv_biases;
    return d;
  }
  constexpr auto stack() const { return describe().stack(); }
  constexpr hugging_face_format hugging_face() const {
    const decoder d = describe();
    return {.model_type = "glm4",
            .architecture = "Glm4ForCausalLM",
            .tensors = in_head_order(tensors(), order_of_heads(d, true)),
            .fields =
                join(llama_fields(d, {.norm_eps = 1.5625e-7}), {{"attention_bias", qkv_biases, true},
                                                                kv_heads_field(d, 2),
                                                                {"head_dim", d.sizes.elements_of_head(), 128},
                                                                share_field(d, 0.5)}),
            .exported = {{"pad_token_id", nullptr}},
            .buffers = llama_buffers()};
  }

 private:
  constexpr std::vector<hugging_face_tensor> tensors() const {
    const std::vector<hugging_face_tensor> all =
        join(joined_swiglu(llama_tensors()),
             {{"layers.#.post_norm1", "model.layers.#.post_self_attn_layernorm.weight"},
              {"layers.#.post_norm2", "model.layers.#.post_mlp_layernorm.weight"}});
    return qkv_biases ? join(all, qkv_bias_tensors()) : all;
  }
};

}  // namespace rankc::models
