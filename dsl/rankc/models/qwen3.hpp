// SPDX-License-Identifier: Apache-2.0
// Qwen3: a Llama with RMSNorm of each query and key head before rotary positions; head_dim is independent of
// hidden.
// Source: Qwen Team 2025; transformers, models/qwen3.
#pragma once
#include <rankc/models/llama_format.hpp>

namespace rankc::models {

/// A dense Qwen3 of any size.
/// Units: vocab may be padded; vocab_used is the number of tokens in use (0: all).
/// Errors: RC202 to RC209, RC215, RC219, RC238, RC250, RC251.
struct qwen3 {
  static constexpr std::string_view family = "qwen3";
  int layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
  double theta = 1000000;
  int vocab_used = 0;
  bool masks_padding = false;
  bool tied = false;
  double norm_eps = 1e-6;
  rankc::rope_scaling rope_scaling{};

  constexpr void check(report& out) const {
    check_sizes(out, {{"head_dim", head_dim}});
    check_llama(out, *this);
  }
  constexpr model_sizes sizes() const { return llama_sizes(*this); }
  constexpr decoder describe() const {
    decoder d = llama_decoder(*this);
    d.qk_norm = qk_norm_kind::head;
    return d;
  }
  constexpr auto stack() const { return describe().stack(); }
  constexpr hugging_face_format hugging_face() const {
    const decoder d = describe();
    return {.model_type = "qwen3",
            .architecture = "Qwen3ForCausalLM",
            .tensors = qwen3_tensors(),
            .fields = join(llama_fields(d), {{"attention_bias", false, false},
                                             kv_heads_field(d, 32),
                                             {"head_dim", head_dim, 128},
                                             {"use_sliding_window", false, false}}),
            .buffers = llama_buffers()};
  }
};

}  // namespace rankc::models
