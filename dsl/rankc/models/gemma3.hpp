// SPDX-License-Identifier: Apache-2.0
// Gemma 3 without vision: most layers have a window, and rotary positions of another base. Queries and keys
// have norms.
// Source: Gemma Team 2025; transformers, models/gemma3.
#pragma once
#include <rankc/models/gemma_format.hpp>

namespace rankc::models {

/// A Gemma 3 of any size. Layer i (from 0) attends to all tokens if full_step divides i + 1. The others have
/// a window and the base local_theta.
/// Units: window in tokens; query_scale, see gemma_decoder; vocab may be padded; vocab_used is the number of
/// tokens in use (0: all).
/// Errors: RC202 to RC209, RC215, RC219, RC238, RC250, RC251.
struct gemma3 {
  static constexpr std::string_view family = "gemma3";
  int layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
  double theta = 1000000;
  int vocab_used = 0;
  bool masks_padding = false;
  bool tied = true;
  double norm_eps = 1e-6;
  rankc::rope_scaling rope_scaling{};  // for layers that attend to all tokens
  int window = 4096;
  int full_step = 6;
  double local_theta = 10000;
  int query_scale = 256;

  constexpr void check(report& out) const {
    const bool ok = check_sizes(
        out,
        {{"head_dim", head_dim}, {"window", window}, {"full_step", full_step}, {"query_scale", query_scale}});
    check_theta(out, local_theta);
    if (ok) check_llama(out, *this);
  }
  constexpr model_sizes sizes() const { return llama_sizes(*this); }
  constexpr decoder describe() const {
    decoder d = gemma_decoder(*this);
    d.qk_norm = qk_norm_kind::head;
    return d;
  }
  constexpr auto stack() const {
    const decoder d = describe();
    decoder local = d;
    local.theta = local_theta;
    local.rope_scaling = {};
    local.attention.window = window;
    return sequential(d.embedding(), mixed{layers, local.block(), d.block(), is_each{full_step}}, d.head());
  }
  constexpr hugging_face_format hugging_face() const {
    const decoder d = describe();
    return {.model_type = "gemma3_text",
            .architecture = "Gemma3ForCausalLM",
            .tensors = plus_one(join(gemma_tensors(), qk_norm_tensors())),
            .fields = join(gemma_fields(d, *this), join(rotary_fields_of_kinds(d), kinds())),
            .exported = {{"pad_token_id", nullptr}},
            .buffers = llama_buffers()};
  }

 private:
  constexpr std::vector<hugging_face_field> kinds() const {
    return {layer_types_field(types_with_full(layers, full_step)),
            {"attn_logit_softcapping", nullptr},
            {"final_logit_softcapping", nullptr},
            {"use_bidirectional_attention", false, false}};
  }
  /// The rotary positions of layers that attend to all tokens, then of the others.
  constexpr std::vector<hugging_face_field> rotary_fields_of_kinds(const decoder& d) const {
    std::vector<hugging_face_field> fields = rotary_fields(d, 1000000);
    for (hugging_face_field& f : fields) f.layers = full_attention;
    return join(
        fields,
        {{.key = "rope_theta",
          .value = local_theta,
          .missing = 10000.0,
          .also = "rope_local_base_freq",  // transformers 4
          .layers = sliding_attention},
         {.key = "rope_type", .value = "default", .missing = "default", .layers = sliding_attention}});
  }
};

}  // namespace rankc::models
