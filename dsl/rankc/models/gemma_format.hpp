// SPDX-License-Identifier: Apache-2.0
// The files of a Gemma, and its decoder: a Llama's with GELU in place of SiLU, norms on both sides of each
// half of a block, and embeddings times the root of the width. The files have the gain of a norm less 1.
// Source: transformers, models/gemma2 and models/gemma3.
#pragma once
#include <rankc/base/square_root.hpp>
#include <rankc/models/llama_format.hpp>

namespace rankc::models {

/// The decoder of a Gemma. The products of queries and keys are divided by the root of `query_scale`.
constexpr decoder gemma_decoder(const auto& m) {
  decoder d = llama_decoder(m);
  d.embedding_factor = square_root(m.hidden);
  d.norms = norm_place::both;
  d.by = activation::geglu;
  if (m.query_scale != m.head_dim) d.attention.scale = 1 / square_root(m.query_scale);
  return d;
}

/// The tensors of a Gemma.
constexpr std::vector<hugging_face_tensor> gemma_tensors() {
  std::vector<hugging_face_tensor> all = llama_tensors();
  for (hugging_face_tensor& t : all)
    if (t.ours == "layers.#.norm2") t.theirs = "model.layers.#.pre_feedforward_layernorm.weight";
  return join(all, {{"layers.#.post_norm1", "model.layers.#.post_attention_layernorm.weight"},
                    {"layers.#.post_norm2", "model.layers.#.post_feedforward_layernorm.weight"}});
}

/// A list whose gains of norms are those of the files plus 1.
constexpr std::vector<hugging_face_tensor> plus_one(std::vector<hugging_face_tensor> all) {
  for (hugging_face_tensor& t : all)
    if (t.theirs.ends_with("norm.weight")) t.added = 1;
  return all;
}

/// The values of config.json that the Gemmas share, without those of rotary positions.
constexpr std::vector<hugging_face_field> gemma_fields(const decoder& d, const auto& m) {
  return join(size_fields(d), {{"num_key_value_heads", m.kv_heads, 4},
                               {"head_dim", m.head_dim, 256},
                               {"hidden_activation", "gelu_pytorch_tanh", "gelu_pytorch_tanh"},
                               {"rms_norm_eps", m.norm_eps, 1e-6},
                               {"tie_word_embeddings", m.tied, true},
                               {"attention_bias", false, false},
                               {"query_pre_attn_scalar", m.query_scale, 256},
                               window_field(m.window, 4096)});
}

/// The kinds of attention of layers of which each `step`th attends to all tokens.
constexpr std::vector<std::string_view> types_with_full(int layers, int step) {
  std::vector<std::string_view> all;
  for (int layer = 0; layer < layers; ++layer)
    all.push_back(is_each{step}(layer) ? full_attention : sliding_attention);
  return all;
}

}  // namespace rankc::models
