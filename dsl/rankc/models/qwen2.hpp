// SPDX-License-Identifier: Apache-2.0
// Qwen2: a Llama whose query, key and value projections have biases.
// Source: Yang et al. 2024; transformers, models/qwen2.
#pragma once
#include <rankc/models/llama_format.hpp>

namespace rankc::models {

/// A dense Qwen2 of any size.
/// Units: vocab may be padded; vocab_used is the number of tokens in use (0: all).
/// Errors: RC202 to RC209, RC215, RC219, RC238, RC250, RC251.
struct qwen2 {
  static constexpr std::string_view family = "qwen2";
  int layers, hidden, heads, kv_heads, ffn, vocab;
  double theta = 1000000;
  int vocab_used = 0;
  bool masks_padding = false;
  bool tied = false;
  double norm_eps = 1e-6;
  rankc::rope_scaling rope_scaling{};

  constexpr void check(report& out) const { check_llama(out, *this); }
  constexpr model_sizes sizes() const { return llama_sizes(*this); }
  constexpr decoder describe() const {
    decoder d = llama_decoder(*this);
    d.qkv_biases = true;
    return d;
  }
  constexpr auto stack() const { return describe().stack(); }
  constexpr hugging_face_format hugging_face() const {
    const decoder d = describe();
    return {.model_type = "qwen2",
            .architecture = "Qwen2ForCausalLM",
            .tensors = join(llama_tensors(), qkv_bias_tensors()),
            .fields = join(llama_fields(d),
                           {kv_heads_field(d, 32), head_dim_field(d), {"use_sliding_window", false, false}}),
            .buffers = llama_buffers()};
  }
};

}  // namespace rankc::models
