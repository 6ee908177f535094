// SPDX-License-Identifier: Apache-2.0
// Mistral: a Llama whose tokens attend to the last tokens only, with a sliding window.
// Source: Jiang et al. 2023; transformers, models/mistral.
#pragma once
#include <rankc/models/llama_format.hpp>

namespace rankc::models {

/// A Mistral of any size.
/// Units: window in tokens, 0: none; vocab may be padded; vocab_used is the number of tokens in use (0: all).
/// Errors: RC202 to RC209, RC215, RC219, RC238, RC250, RC251.
struct mistral {
  static constexpr std::string_view family = "mistral";
  int layers, hidden, heads, kv_heads, ffn, vocab;
  double theta = 1000000;
  int vocab_used = 0;
  bool masks_padding = false;
  bool tied = false;
  double norm_eps = default_norm_eps;
  rankc::rope_scaling rope_scaling{};
  int head_dim = 0;  // 0: hidden / heads
  int window = 0;

  constexpr void check(report& out) const { check_llama(out, *this); }
  constexpr model_sizes sizes() const { return llama_sizes(*this); }
  constexpr decoder describe() const {
    decoder d = llama_decoder(*this);
    d.attention.window = window;
    return d;
  }
  constexpr auto stack() const { return describe().stack(); }
  constexpr hugging_face_format hugging_face() const {
    const decoder d = describe();
    return {.model_type = "mistral",
            .architecture = "MistralForCausalLM",
            .tensors = llama_tensors(),
            .fields =
                join(llama_fields(d), {kv_heads_field(d, 8), head_dim_field(d), window_field(window, 4096)}),
            .buffers = llama_buffers()};
  }
};

}  // namespace rankc::models
