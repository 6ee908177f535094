// SPDX-License-Identifier: Apache-2.0
// Phi-3: a Llama whose files join q, k and v, and the two inputs of SwiGLU. It may have a window, and turn a
// part of each head.
// Source: Abdin et al. 2024; transformers, models/phi3.
#pragma once
#include <rankc/models/llama_format.hpp>

namespace rankc::models {

/// A Phi-3 of any size. It has no scaling of rotary positions: longrope, as its long forms have, is refused.
/// Units: window in tokens, 0: none; rotary_share of the elements of a head, which turn; vocab may be padded;
/// vocab_used is the number of tokens in use (0: all).
/// Errors: RC202 to RC209, RC215, RC219, RC238, RC250, RC251.
struct phi3 {
  static constexpr std::string_view family = "phi3";
  int layers, hidden, heads, kv_heads, ffn, vocab;
  double theta = 10000;
  int vocab_used = 0;
  bool masks_padding = false;
  bool tied = false;
  double norm_eps = 1e-5;
  int window = 0;
  double rotary_share = 1;

  constexpr void check(report& out) const { check_llama(out, *this); }
  constexpr model_sizes sizes() const { return llama_sizes(*this); }
  constexpr decoder describe() const {
    decoder d = llama_decoder(*this);
    d.rope_scaling.share = rotary_share;
    d.attention.window = window;
    return d;
  }
  constexpr auto stack() const { return describe().stack(); }
  constexpr hugging_face_format hugging_face() const {
    const decoder d = describe();
    return {
        .model_type = "phi3",
        .architecture = "Phi3ForCausalLM",
        .tensors = in_head_order(joined_swiglu(joined_attention(llama_tensors())), order_of_heads(d, false)),
        .fields =
            join(llama_fields(d, {.norm_eps = 1e-5}),
                 {kv_heads_field(d), head_dim_field(d), share_field(d, 1), window_field(window, nullptr)}),
        .exported = {{"resid_pdrop", 0.0}, {"embd_pdrop", 0.0}, {"pad_token_id", nullptr}},
        .buffers = llama_buffers()};
  }
};

}  // namespace rankc::models
