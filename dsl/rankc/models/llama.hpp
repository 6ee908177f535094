// SPDX-License-Identifier: Apache-2.0
// Llama: rotary positions, RMSNorm, SwiGLU, grouped-query attention, no biases.
// Source: Touvron et al. 2023; Grattafiori et al. 2024.
#pragma once
#include <rankc/models/llama_format.hpp>

namespace rankc::models {

/// A Llama of any size.
/// Units: vocab may be padded; vocab_used is the number of tokens in use (0: all).
/// Errors: RC202 to RC209, RC215, RC219, RC238, RC250, RC251.
struct llama {
  static constexpr std::string_view family = "llama";
  int layers, hidden, heads, kv_heads, ffn, vocab;
  double theta = 500000;
  int vocab_used = 0;
  bool masks_padding = false;
  bool tied = false;
  double norm_eps = default_norm_eps;
  rankc::rope_scaling rope_scaling{};
  int head_dim = 0;  // 0: hidden / heads

  constexpr void check(report& out) const { check_llama(out, *this); }
  constexpr model_sizes sizes() const { return llama_sizes(*this); }
  constexpr decoder describe() const { return llama_decoder(*this); }
  constexpr auto stack() const { return describe().stack(); }
  constexpr hugging_face_format hugging_face() const {
    const decoder d = describe();
    return {.model_type = "llama",
            .architecture = "LlamaForCausalLM",
            .tensors = llama_tensors(),
            .fields = join(llama_fields(d), {{"attention_bias", false, false},
                                             kv_heads_field(d),
                                             head_dim_field(d),
                                             {"mlp_bias", false, false}}),
            .buffers = llama_buffers()};
  }
};

}  // namespace rankc::models
