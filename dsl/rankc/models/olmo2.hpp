// SPDX-License-Identifier: Apache-2.0
// OLMo 2: a Llama with its norms after each half of a block, and RMSNorm of all query heads together and of
// all key heads together. It takes no tp (RC280).
// Source: Groeneveld et al. 2024; transformers, models/olmo2.
#pragma once
#include <rankc/models/llama_format.hpp>

namespace rankc::models {

/// An OLMo 2 of any size.
/// Units: vocab may be padded; vocab_used is the number of tokens in use (0: all).
/// Errors: RC202 to RC209, RC215, RC219, RC238, RC250, RC251, RC280.
struct olmo2 {
  static constexpr std::string_view family = "olmo2";
  int layers, hidden, heads, kv_heads, ffn, vocab;
  double theta = 500000;
  int vocab_used = 0;
  bool masks_padding = false;
  bool tied = false;
  double norm_eps = 1e-6;
  rankc::rope_scaling rope_scaling{};

  constexpr void check(report& out) const { check_llama(out, *this); }
  constexpr model_sizes sizes() const { return llama_sizes(*this); }
  constexpr decoder describe() const {
    decoder d = llama_decoder(*this);
    d.qk_norm = qk_norm_kind::whole;
    d.norms = norm_place::after;
    return d;
  }
  constexpr auto stack() const { return describe().stack(); }
  constexpr hugging_face_format hugging_face() const {
    const decoder d = describe();
    return {.model_type = "olmo2",
            .architecture = "Olmo2ForCausalLM",
            .tensors = tensors(),
            .fields = join(llama_fields(d, {.norm_eps = 1e-5}),
                           {{"attention_bias", false, false}, kv_heads_field(d), head_dim_field(d)}),
            .buffers = llama_buffers()};
  }

 private:
  static constexpr std::vector<hugging_face_tensor> tensors() {
    std::vector<hugging_face_tensor> all = llama_tensors();
    std::erase_if(all, [](const hugging_face_tensor& t) {
      return t.ours == "layers.#.norm1" || t.ours == "layers.#.norm2";
    });
    return join(join(all, qk_norm_tensors()),
                {{"layers.#.post_norm1", "model.layers.#.post_attention_layernorm.weight"},
                 {"layers.#.post_norm2", "model.layers.#.post_feedforward_layernorm.weight"}});
  }
};

}  // namespace rankc::models
