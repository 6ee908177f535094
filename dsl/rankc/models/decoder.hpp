// SPDX-License-Identifier: Apache-2.0
// The decoder behind all built-in models: a model's configuration, and the layers made from it.
#pragma once
#include <rankc/models/blocks.hpp>
#include <rankc/models/experts.hpp>
#include <rankc/rules/values/model.hpp>

namespace rankc::models {

/// The attention of one block: an attention_setting, whether each head has a sink, and the elements of a
/// value head; 0: as many as a key head has.
struct block_attention {
  int window = 0;
  double softcap = 0, scale = 0;
  bool sinks = false;
  int value_dim = 0;
};

/// Selects every `step`th layer, for `mixed`.
struct is_each {
  int step;
  constexpr bool operator()(int layer) const { return (layer + 1) % step == 0; }
};

struct decoder {
  model_sizes sizes;
  double norm_eps = default_norm_eps;
  double theta = 0;  // base of rotary positions; read only if the sizes have `rotary`
  rankc::rope_scaling rope_scaling{};
  double embedding_factor = 1;
  norm_kind norm = norm_kind::rms;
  bool biases = false, qkv_biases = false;
  qk_norm_kind qk_norm = qk_norm_kind::none;
  norm_place norms = norm_place::before;
  activation by = activation::swiglu;
  block_attention attention{};  // for blocks without their own
  experts_of_layer experts{};
  model_routers routers{};

  /// Checks the numbers of the configuration, except its sizes.
  /// Errors: RC238, RC250, RC251, RC256, RC258.
  constexpr void check(report& out) const {
    if (sizes.rotary) {
      check_theta(out, theta);
      check_rope_scaling(out, rope_scaling, theta);
      check_rope_share(out, rope_scaling.share, sizes.elements_of_head());
    }
    check_norm_eps(out, norm_eps);
    if (sizes.experts == 0) return;
    check_model_routers(out, routers);
    check_capacity(out, experts.capacity, experts.capacity_group, routers);
  }

  constexpr models::embedding embedding() const { return {table(), !sizes.rotary, embedding_factor}; }
  constexpr models::block block() const { return block(attention); }
  constexpr models::block block(const block_attention& a) const {
    return {half_of(a), dim{"ffn", sizes.ffn}, by};
  }
  constexpr models::expert_block expert_block() const { return expert_block(attention); }
  constexpr models::expert_block expert_block(const block_attention& a) const {
    return {half_of(a), experts};
  }
  /// The layers of a model whose blocks are equal.
  constexpr auto stack() const { return sequential(embedding(), repeat{sizes.layers, block()}, head()); }
  constexpr models::head head() const {
    return {sizes.tied_embeddings ? table() : token_table(words(), hidden(), "lm_head"), norm_eps, norm,
            sizes.softmax_rows()};
  }

 private:
  constexpr dim hidden() const { return {"hidden", sizes.hidden}; }
  constexpr dim words() const { return {"vocab", sizes.vocab}; }
  constexpr parameter_handle table() const { return token_table(words(), hidden()); }
  constexpr attention_half half_of(const block_attention& a) const {
    const int of_head = sizes.elements_of_head();
    const dim heads{"heads", sizes.heads * of_head, of_head, "head_dim"},
        kv_heads = sizes.kv_heads ? dim{"kv_heads", sizes.kv_heads * of_head, of_head, "head_dim"} : heads;
    return {.hidden = hidden(),
            .heads = heads,
            .kv_heads = kv_heads,
            .of = {sizes.layers, norm_eps, norm, biases, norms},
            .theta = theta,
            .rope_scaling = rope_scaling,
            .qk_norm = qk_norm,
            .qkv_biases = qkv_biases,
            .setting = {.window = a.window, .softcap = a.softcap, .scale = a.scale},
            .has_sinks = a.sinks,
            .value_dim = a.value_dim};
  }
};

}  // namespace rankc::models
