// SPDX-License-Identifier: Apache-2.0
// A decoder whose layers alternate between two settings of attention, and Mistral.
#pragma once
#include <rankc/rankc.hpp>

namespace attention_family {

using namespace rankc;

struct alternating {
  models::block_attention first, second;
  int layers = 4, head_dim = 4, vocab = 8, vocab_used = 0;

  constexpr void check(report& out) const { describe().check(out); }
  constexpr model_sizes sizes() const {
    return {.layers = layers,
            .hidden = 16,
            .heads = 8,
            .kv_heads = 4,
            .ffn = 24,
            .vocab = vocab,
            .tied_embeddings = true,
            .rotary = true,
            .head_dim = head_dim};
  }
  constexpr models::decoder describe() const { return {.sizes = sizes(), .theta = 100}; }
  constexpr auto stack() const {
    const models::decoder d = describe();
    return sequential(d.embedding(), pattern{layers, d.block(first), d.block(second)}, d.head());
  }
};

/// Mistral at the size of oracles/families/mistral.
struct mistral {
  int vocab = 96, vocab_used = 0;

  constexpr void check(report& out) const { describe().check(out); }
  constexpr model_sizes sizes() const {
    return {.layers = 2,
            .hidden = 32,
            .heads = 4,
            .kv_heads = 2,
            .ffn = 48,
            .vocab = vocab,
            .rotary = true,
            .head_dim = 8};
  }
  constexpr models::decoder describe() const { return {.sizes = sizes(), .norm_eps = 1e-6, .theta = 10000}; }
  constexpr auto stack() const {
    const models::decoder d = describe();
    return sequential(d.embedding(), repeat{2, d.block({.window = 8})}, d.head());
  }
};

/// The decoder of oracles/windows.
struct windows_oracle {
  int vocab = 16, vocab_used = 0;

  constexpr void check(report& out) const { describe().check(out); }
  constexpr model_sizes sizes() const {
    return {.layers = 4,
            .hidden = 8,
            .heads = 4,
            .kv_heads = 2,
            .ffn = 12,
            .vocab = vocab,
            .rotary = true,
            .head_dim = 4};
  }
  constexpr models::decoder describe() const { return {.sizes = sizes(), .norm_eps = 1e-5, .theta = 100}; }
  constexpr auto stack() const {
    const models::decoder d = describe();
    return sequential(d.embedding(),
                      pattern{4, d.block({.window = 1}), d.block({.window = 2}), d.block({.window = 3}),
                              d.block({.window = 5})},
                      d.head());
  }
};

/// The decoder of oracles/sinks and of oracles/value_heads.
struct small_oracle {
  models::block_attention first, second;
  int vocab = 16, vocab_used = 0;

  constexpr void check(report& out) const { describe().check(out); }
  constexpr model_sizes sizes() const {
    return {.layers = 2,
            .hidden = 8,
            .heads = 4,
            .kv_heads = 2,
            .ffn = 12,
            .vocab = vocab,
            .rotary = true,
            .head_dim = 4};
  }
  constexpr models::decoder describe() const { return {.sizes = sizes(), .norm_eps = 1e-5, .theta = 100}; }
  constexpr auto stack() const {
    const models::decoder d = describe();
    return sequential(d.embedding(), pattern{2, d.block(first), d.block(second)}, d.head());
  }
};

}  // namespace attention_family
