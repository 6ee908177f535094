// SPDX-License-Identifier: Apache-2.0
// GPT-2: learned positions, LayerNorm, biases, GELU, multi-head attention, a tied head.
// Source: Radford et al. 2019; names and padding of the vocabulary as in nanoGPT.
#pragma once
#include <rankc/models/decoder.hpp>

namespace rankc::models {

/// A GPT-2 of any size.
/// Units: vocab may be padded; vocab_used is the number of tokens in use (0: all).
/// Errors: RC202 to RC209, RC215, RC219, RC250.
struct gpt2 {
  static constexpr std::string_view family = "gpt2";
  int layers, hidden, heads, ffn, vocab;
  int vocab_used = 0;
  bool tied = true;
  double norm_eps = default_norm_eps;

  constexpr void check(report& out) const {
    check_sizes(out, {{"hidden", hidden}, {"heads", heads}, {"ffn", ffn}, {"vocab", vocab}});
    describe().check(out);
  }
  constexpr model_sizes sizes() const {
    return {.layers = layers,
            .hidden = hidden,
            .heads = heads,
            .ffn = ffn,
            .vocab = vocab,
            .vocab_used = vocab_used,
            .tied_embeddings = tied};
  }
  constexpr decoder describe() const {
    return {.sizes = sizes(),
            .norm_eps = norm_eps,
            .norm = norm_kind::layer,
            .biases = true,
            .by = activation::gelu};
  }
  constexpr auto stack() const {
    const decoder d = describe();
    return sequential(d.embedding(), repeat{layers, d.block()}, d.head());
  }
};

}  // namespace rankc::models
