// SPDX-License-Identifier: Apache-2.0
// The files of a Llama, and the part of them that models made from a Llama share with it.
// Source: transformers, models/llama. Its rotary positions turn the halves of a head, as rankc's do.
#pragma once
#include <rankc/models/hugging_face.hpp>
#include <rankc/models/llama_sizes.hpp>

#include <initializer_list>
#include <utility>

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

/// The gains of norms of queries and keys.
constexpr std::vector<hugging_face_tensor> qk_norm_tensors() {
  return {{"layers.#.q_norm", "model.layers.#.self_attn.q_norm.weight"},
          {"layers.#.k_norm", "model.layers.#.self_attn.k_norm.weight"}};
}
/// The tensors of a Qwen3: a Llama's, and the gains of the norms of query and key heads.
constexpr std::vector<hugging_face_tensor> qwen3_tensors() {
  return join(llama_tensors(), qk_norm_tensors());
}

/// The biases of q, k and v.
constexpr std::vector<hugging_face_tensor> qkv_bias_tensors() {
  return {{"layers.#.wq.bias", "model.layers.#.self_attn.q_proj.bias"},
          {"layers.#.wk.bias", "model.layers.#.self_attn.k_proj.bias"},
          {"layers.#.wv.bias", "model.layers.#.self_attn.v_proj.bias"}};
}

/// A list whose tensors of these parameters are parts of one tensor of the files.
constexpr std::vector<hugging_face_tensor> joined_as(std::vector<hugging_face_tensor> all,
                                                     std::initializer_list<std::string_view> parts,
                                                     std::string_view theirs) {
  for (hugging_face_tensor& t : all)
    for (const std::string_view part : parts)
      if (t.ours == part) t.theirs = theirs;
  return all;
}
constexpr std::vector<hugging_face_tensor> joined_attention(std::vector<hugging_face_tensor> all) {
  return joined_as(std::move(all), {"layers.#.wq", "layers.#.wk", "layers.#.wv"},
                   "model.layers.#.self_attn.qkv_proj.weight");
}
constexpr std::vector<hugging_face_tensor> joined_swiglu(std::vector<hugging_face_tensor> all) {
  return joined_as(std::move(all), {"layers.#.w1", "layers.#.w3"}, "model.layers.#.mlp.gate_up_proj.weight");
}

/// The order of heads in files whose first elements turn, as halves or as pairs of neighbours.
constexpr head_order order_of_heads(const decoder& d, bool neighbours) {
  if (!neighbours && d.rope_scaling.share == 1) return {};
  const int elements = d.sizes.elements_of_head();
  return {elements, static_cast<int>(d.rope_scaling.share * elements), neighbours};
}
/// A list with this order of query and key heads.
constexpr std::vector<hugging_face_tensor> in_head_order(std::vector<hugging_face_tensor> all,
                                                         const head_order& order) {
  for (hugging_face_tensor& t : all)
    for (const std::string_view turned :
         {"layers.#.wq", "layers.#.wk", "layers.#.wq.bias", "layers.#.wk.bias"})
      if (t.ours == turned) t.heads = order;
  return all;
}

/// The values that replace missing keys in a family's config.json.
struct missing_values {
  double norm_eps = 1e-6, theta = 10000;
  bool tied = false;
};

/// The values of rotary positions, in files that have one object for all layers.
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
  if (!s.has_bounds()) return fields;
  const hugging_face_field positions{
      .key = "original_max_position_embeddings", .value = s.original_positions, .rotary = true};
  if (s.by == rankc::rope_scaling::llama3)
    return join(fields, {{.key = "low_freq_factor", .value = s.low_freq_factor, .rotary = true},
                         {.key = "high_freq_factor", .value = s.high_freq_factor, .rotary = true},
                         positions});
  return join(fields, {positions,
                       {.key = "beta_slow", .value = s.low_freq_factor, .missing = 1.0, .rotary = true},
                       {.key = "beta_fast", .value = s.high_freq_factor, .missing = 32.0, .rotary = true},
                       {.key = "attention_factor", .value = nullptr, .rotary = true},
                       {.key = "mscale", .value = nullptr, .rotary = true},
                       {.key = "mscale_all_dim", .value = nullptr, .rotary = true},
                       {.key = "truncate", .value = true, .missing = true, .rotary = true}});
}

/// The sizes in config.json.
constexpr std::vector<hugging_face_field> size_fields(const decoder& d) {
  std::vector<hugging_face_field> fields{{"num_hidden_layers", d.sizes.layers},
                                         {"hidden_size", d.sizes.hidden},
                                         {"num_attention_heads", d.sizes.heads}};
  if (d.sizes.ffn > 0) fields.push_back({"intermediate_size", d.sizes.ffn});
  return fields;
}

/// The values of config.json that models made from a Llama share.
constexpr std::vector<hugging_face_field> llama_fields(const decoder& d, const missing_values& missing = {}) {
  std::vector<hugging_face_field> fields =
      join(size_fields(d), {{"hidden_act", "silu", "silu"}, {"rms_norm_eps", d.norm_eps, missing.norm_eps}});
  fields = join(fields, rotary_fields(d, missing.theta));
  return join(fields, {{"tie_word_embeddings", d.sizes.tied_embeddings, missing.tied}});
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

/// The share of a head's elements that turn. If the key is missing, it is `missing`.
constexpr hugging_face_field share_field(const decoder& d, double missing) {
  return {.key = "partial_rotary_factor", .value = d.rope_scaling.share, .missing = missing, .rotary = true};
}

/// The window of attention in tokens; null: none. If the key is missing, it is `missing`.
constexpr hugging_face_field window_field(int window, const hugging_face_value& missing) {
  return {.key = "sliding_window",
          .value = window > 0 ? hugging_face_value(window) : nullptr,
          .missing = missing,
          .nullable = true};
}

/// The kinds of attention of the layers, as in config.json.
inline constexpr std::string_view full_attention = "full_attention", sliding_attention = "sliding_attention";

/// The kind of attention of each layer. A config.json without them has those of the family, which are these.
constexpr hugging_face_field layer_types_field(const std::vector<std::string_view>& types) {
  return {.key = "layer_types", .value = types, .missing = types};
}

/// The balance loss of routers. It is exported only if its sums have the scope that transformers uses.
constexpr hugging_face_balance balance_of(const router_losses& losses) {
  const bool is_theirs = !losses.local && losses.over != router_losses::each_layer;
  return {"router_aux_loss_coef", "output_router_logits", is_theirs ? losses.balance : 0};
}

/// Buffers that files of earlier versions have.
constexpr std::vector<std::string_view> llama_buffers() { return {".rotary_emb.inv_freq"}; }

}  // namespace rankc::models
