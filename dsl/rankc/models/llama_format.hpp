// SPDX-License-Identifier: Apache-2.0
// The files of a Llama, and the part of them that models made from a Llama share with it.
// Source: transformers, models/llama. Its rotary positions turn the halves of a head, as rankc's do.
#pragma once
#include <rankc/models/decoder.hpp>
#include <rankc/models/hugging_face.hpp>

namespace rankc::models {

/// The tensors of a Llama without an MLP.
constexpr std::vector<hugging_face_tensor> llama_attention_tensors() {
  return {{"wte", "model.embed_tokens.weight", false, rows_in_files::vocabulary},
          {"norm", "model.norm.weight"},
          {"lm_head", "lm_head.weight", false, rows_in_files::vocabulary, "wte"},
          {"layers.#.norm1", "model.layers.#.input_layernorm.weight"},
          {"layers.#.wq", "model.layers.#.self_attn.q_proj.weight"},
          {"layers.#.wk", "model.layers.#.self_attn.k_proj.weight"},
          {"layers.#.wv", "model.layers.#.self_attn.v_proj.weight"},
          {"layers.#.wo", "model.layers.#.self_attn.o_proj.weight"},
          {"layers.#.norm2", "model.layers.#.post_attention_layernorm.weight"}};
}

/// The tensors of a Llama.
constexpr std::vector<hugging_face_tensor> llama_tensors() {
  return join(llama_attention_tensors(), {{"layers.#.w1", "model.layers.#.mlp.gate_proj.weight"},
                                          {"layers.#.w3", "model.layers.#.mlp.up_proj.weight"},
                                          {"layers.#.w2", "model.layers.#.mlp.down_proj.weight"}});
}

/// The tensors of a Qwen3: a Llama's, and the gains of the norms of query and key heads.
constexpr std::vector<hugging_face_tensor> qwen3_tensors() {
  return join(llama_tensors(), {{"layers.#.q_norm", "model.layers.#.self_attn.q_norm.weight"},
                                {"layers.#.k_norm", "model.layers.#.self_attn.k_norm.weight"}});
}

/// The values that replace missing keys in a family's config.json.
struct missing_values {
  double norm_eps = 1e-6, theta = 10000;
};

/// The values of rotary positions.
constexpr std::vector<hugging_face_field> rotary_fields(const decoder& d, double missing_theta) {
  const rankc::rope_scaling& s = d.rope_scaling;
  std::vector<hugging_face_field> fields{
      {.key = "rope_theta", .value = d.theta, .missing = missing_theta, .rotary = true},
      {.key = "rope_type",
       .value = name_of(s.by),
       .missing = name_of(rankc::rope_scaling::none),
       .rotary = true}};
  if (s.by != rankc::rope_scaling::none)
    fields.push_back({.key = "factor", .value = s.factor, .rotary = true});
  if (s.by != rankc::rope_scaling::llama3) return fields;
  return join(fields,
              {{.key = "low_freq_factor", .value = s.low_freq_factor, .rotary = true},
               {.key = "high_freq_factor", .value = s.high_freq_factor, .rotary = true},
               {.key = "original_max_position_embeddings", .value = s.original_positions, .rotary = true}});
}

/// The values of config.json that models made from a Llama share.
constexpr std::vector<hugging_face_field> llama_fields(const decoder& d, const missing_values& missing = {}) {
  std::vector<hugging_face_field> fields{{"num_hidden_layers", d.sizes.layers},
                                         {"hidden_size", d.sizes.hidden},
                                         {"num_attention_heads", d.sizes.heads}};
  if (d.sizes.ffn > 0) fields.push_back({"intermediate_size", d.sizes.ffn});
  fields = join(fields, {{"hidden_act", "silu", "silu"}, {"rms_norm_eps", d.norm_eps, missing.norm_eps}});
  fields = join(fields, rotary_fields(d, missing.theta));
  return join(fields, {{"tie_word_embeddings", d.sizes.tied_embeddings, false}});
}

/// The width of a head. If config.json lacks it, it is hidden_size / num_attention_heads.
constexpr hugging_face_field head_dim_field(const decoder& d) {
  return {.key = "head_dim",
          .value = d.sizes.elements_of_head(),
          .follows = {.of = "hidden_size", .over = "num_attention_heads"}};
}

/// The number of key-value heads. If config.json has null, it is the number of query heads. If the key is
/// missing, it is `missing`.
constexpr hugging_face_field kv_heads_field(const decoder& d, const hugging_face_value& missing = nullptr) {
  return {.key = "num_key_value_heads",
          .value = d.sizes.kv_heads,
          .missing = missing,
          .follows = {.of = "num_attention_heads"}};
}

/// The balance loss of routers. It is exported only if its sums have the scope that transformers uses.
constexpr hugging_face_balance balance_of(const router_losses& losses) {
  const bool is_theirs = !losses.local && losses.over != router_losses::each_layer;
  return {"router_aux_loss_coef", "output_router_logits", is_theirs ? losses.balance : 0};
}

/// Buffers that files of earlier versions have.
constexpr std::vector<std::string_view> llama_buffers() { return {".rotary_emb.inv_freq"}; }

}  // namespace rankc::models
