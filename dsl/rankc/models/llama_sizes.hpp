// SPDX-License-Identifier: Apache-2.0
// The fields of a Llama, which models made from a Llama have too: their sizes, their checks and a decoder of
// them. Such a model adds its own fields and changes the decoder.
#pragma once
#include <rankc/models/decoder.hpp>

namespace rankc::models {

/// The sizes of a model with the fields of a Llama. Its fields head_dim, experts, top_k and expert_ffn are
/// optional. Experts have the width expert_ffn, and a model without `ffn` has no other width.
constexpr model_sizes llama_sizes(const auto& m) {
  model_sizes s{.layers = m.layers,
                .hidden = m.hidden,
                .heads = m.heads,
                .kv_heads = m.kv_heads,
                .vocab = m.vocab,
                .vocab_used = m.vocab_used,
                .masks_padding = m.masks_padding,
                .tied_embeddings = m.tied,
                .rotary = true};
  if constexpr (requires { m.head_dim; }) s.head_dim = m.head_dim;
  if constexpr (requires { m.experts; }) {
    s.experts = m.experts;
    s.top_k = m.top_k;
    s.ffn = m.expert_ffn;
  }
  if constexpr (requires { m.ffn; }) s.ffn = m.ffn;
  return s;
}

/// Checks a model with the fields of a Llama: the sizes that it cannot leave out, and its decoder.
/// Errors: RC206, RC251, and those of decoder::check.
constexpr void check_llama(report& out, const auto& m) {
  check_sizes(out, {{"hidden", m.hidden}, {"heads", m.heads}, {"kv_heads", m.kv_heads}, {"vocab", m.vocab}});
  if constexpr (requires { m.experts; })
    check_sizes(out, {{"experts", m.experts}, {"top_k", m.top_k}, {"expert_ffn", m.expert_ffn}});
  else check_sizes(out, {{"ffn", m.ffn}});
  if constexpr (requires { m.rope_scaling; })
    if (m.rope_scaling.share != 1)
      refuse(out, 251) << "rope_scaling.share=" << m.rope_scaling.share << " of models::" << m.family
                       << ", which has no such field in its files: share=1, or models::glm4 or models::phi3, "
                          "which have a rotary_share";
  m.describe().check(out);
}

/// The decoder of a Llama with the fields of `m`.
constexpr decoder llama_decoder(const auto& m) {
  decoder d{.sizes = m.sizes(), .norm_eps = m.norm_eps, .theta = m.theta};
  if constexpr (requires { m.rope_scaling; }) d.rope_scaling = m.rope_scaling;
  return d;
}

}  // namespace rankc::models
