// SPDX-License-Identifier: Apache-2.0
// SmolLM3: a Llama in which every fourth layer has no positions.
// Source: Bakouch et al. 2025; Yang et al. 2025; transformers, models/smollm3.
#pragma once
#include <rankc/models/llama_format.hpp>

namespace rankc::models {

/// A SmolLM3 of any size. Layer i (from 0) has no rotary positions if plain_step divides i + 1.
/// Units: vocab may be padded; vocab_used is the number of tokens in use (0: all).
/// Errors: RC202 to RC209, RC215, RC219, RC238, RC250, RC251.
struct smollm3 {
  static constexpr std::string_view family = "smollm3";
  int layers, hidden, heads, kv_heads, ffn, vocab;
  double theta = 2000000;
  int vocab_used = 0;
  bool masks_padding = false;
  bool tied = false;
  double norm_eps = 1e-6;
  rankc::rope_scaling rope_scaling{};
  int plain_step = 4;

  constexpr void check(report& out) const {
    if (check_sizes(out, {{"plain_step", plain_step}})) check_llama(out, *this);
  }
  constexpr model_sizes sizes() const { return llama_sizes(*this); }
  constexpr decoder describe() const { return llama_decoder(*this); }
  constexpr auto stack() const {
    const decoder d = describe();
    decoder plain = d;
    plain.theta = 0;
    return sequential(d.embedding(), mixed{layers, d.block(), plain.block(), is_each{plain_step}}, d.head());
  }
  constexpr hugging_face_format hugging_face() const {
    const decoder d = describe();
    return {
        .model_type = "smollm3",
        .architecture = "SmolLM3ForCausalLM",
        .tensors = llama_tensors(),
        .fields = join(llama_fields(d, {.theta = 2e6, .tied = true}),
                       {{"attention_bias", false, false},
                        kv_heads_field(d, 4),
                        {"mlp_bias", false, false},
                        {"no_rope_layers", rotary_layers()},
                        {"use_sliding_window", false, false},
                        layer_types_field(std::vector(static_cast<std::size_t>(layers), full_attention))}),
        .exported = {{"pad_token_id", nullptr}},
        .buffers = llama_buffers()};
  }

 private:
  /// For each layer 1 if it has rotary positions, otherwise 0.
  constexpr std::vector<int> rotary_layers() const {
    std::vector<int> all;
    for (int layer = 0; layer < layers; ++layer) all.push_back(!is_each{plain_step}(layer));
    return all;
  }
};

}  // namespace rankc::models
