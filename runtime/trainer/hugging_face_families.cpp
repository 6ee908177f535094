// SPDX-License-Identifier: Apache-2.0
#include "hugging_face_families.hpp"

#include "json_file.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <optional>

namespace rankc::runtime {
namespace {

using nlohmann::json;

/// A size of a config; empty where it is missing, of another type or larger than any model's.
std::optional<std::int64_t> size_in(const json& config, std::string_view key) {
  constexpr std::int64_t largest = std::int64_t{1} << 40;
  const auto size = value_as<std::int64_t>(value_of(config, key));
  return size && *size > 0 && *size <= largest ? size : std::nullopt;
}

// Source: transformers, models/gpt2. Its Conv1D keeps weights as (in, out), and q, k and v are one.
constexpr tensor_rule gpt2_tensors[]{{"wte", "wte.weight", false, 0, 1, rows_of::vocabulary},
                                     {"wpe", "wpe.weight", false, 0, 1, rows_of::positions},
                                     {"norm", "ln_f.weight"},
                                     {"norm.bias", "ln_f.bias"},
                                     {"lm_head", "lm_head.weight", false, 0, 1, rows_of::vocabulary},
                                     {"layers.#.norm1", "h.#.ln_1.weight"},
                                     {"layers.#.norm1.bias", "h.#.ln_1.bias"},
                                     {"layers.#.wq", "h.#.attn.c_attn.weight", true, 0, 3},
                                     {"layers.#.wk", "h.#.attn.c_attn.weight", true, 1, 3},
                                     {"layers.#.wv", "h.#.attn.c_attn.weight", true, 2, 3},
                                     {"layers.#.wq.bias", "h.#.attn.c_attn.bias", false, 0, 3},
                                     {"layers.#.wk.bias", "h.#.attn.c_attn.bias", false, 1, 3},
                                     {"layers.#.wv.bias", "h.#.attn.c_attn.bias", false, 2, 3},
                                     {"layers.#.wo", "h.#.attn.c_proj.weight", true},
                                     {"layers.#.wo.bias", "h.#.attn.c_proj.bias"},
                                     {"layers.#.norm2", "h.#.ln_2.weight"},
                                     {"layers.#.norm2.bias", "h.#.ln_2.bias"},
                                     {"layers.#.w1", "h.#.mlp.c_fc.weight", true},
                                     {"layers.#.w1.bias", "h.#.mlp.c_fc.bias"},
                                     {"layers.#.w2", "h.#.mlp.c_proj.weight", true},
                                     {"layers.#.w2.bias", "h.#.mlp.c_proj.bias"}};
constexpr config_rule gpt2_config[]{{"vocab_size", "vocab"},
                                    {"n_layer", "layers"},
                                    {"n_embd", "hidden"},
                                    {"n_head", "heads"},
                                    {"n_inner", "ffn", "", "",
                                     [](const json& c) {
                                       const auto hidden = size_in(c, "n_embd");
                                       return hidden ? json(4 * *hidden) : json();
                                     }},
                                    {"activation_function", "", "\"gelu_new\"", "\"gelu_new\""},
                                    {"layer_norm_epsilon", "norm_eps", "", "1e-05"},
                                    {"tie_word_embeddings", "tied", "", "true"},
                                    {"scale_attn_weights", "", "true", "true"},
                                    {"scale_attn_by_inverse_layer_idx", "", "false", "false"},
                                    {"add_cross_attention", "", "false", "false"}};
// The plan has no dropout; transformers would train with 0.1.
constexpr config_default gpt2_defaults[]{
    {"attn_pdrop", "0.0"}, {"embd_pdrop", "0.0"}, {"resid_pdrop", "0.0"}};
constexpr std::string_view gpt2_skipped[]{".attn.bias", ".attn.masked_bias"};

/// Two tables as one.
template <class Rule, std::size_t A, std::size_t B>
constexpr std::array<Rule, A + B> join(const Rule (&first)[A], const Rule (&second)[B]) {
  std::array<Rule, A + B> all{};
  std::copy(std::begin(second), std::end(second), std::copy(std::begin(first), std::end(first), all.begin()));
  return all;
}

// Source: transformers, models/llama, qwen3, qwen3_moe and mixtral. Rotary positions turn the halves of a
// head, as ours do.
constexpr tensor_rule llama_tensors[]{{"wte", "embed_tokens.weight", false, 0, 1, rows_of::vocabulary},
                                      {"norm", "norm.weight"},
                                      {"lm_head", "lm_head.weight", false, 0, 1, rows_of::vocabulary},
                                      {"layers.#.norm1", "layers.#.input_layernorm.weight"},
                                      {"layers.#.wq", "layers.#.self_attn.q_proj.weight"},
                                      {"layers.#.wk", "layers.#.self_attn.k_proj.weight"},
                                      {"layers.#.wv", "layers.#.self_attn.v_proj.weight"},
                                      {"layers.#.q_norm", "layers.#.self_attn.q_norm.weight"},  // of a Qwen3
                                      {"layers.#.k_norm", "layers.#.self_attn.k_norm.weight"},
                                      {"layers.#.wo", "layers.#.self_attn.o_proj.weight"},
                                      {"layers.#.norm2", "layers.#.post_attention_layernorm.weight"},
                                      {"layers.#.w1", "layers.#.mlp.gate_proj.weight"},
                                      {"layers.#.w3", "layers.#.mlp.up_proj.weight"},
                                      {"layers.#.w2", "layers.#.mlp.down_proj.weight"}};
constexpr tensor_rule qwen3_expert_tensors[]{
    {"layers.#.router", "layers.#.mlp.gate.weight"},
    {"layers.#.experts.gate", "layers.#.mlp.experts.@.gate_proj.weight", true},
    {"layers.#.experts.up", "layers.#.mlp.experts.@.up_proj.weight", true},
    {"layers.#.experts.down", "layers.#.mlp.experts.@.down_proj.weight"}};
constexpr tensor_rule mixtral_expert_tensors[]{
    {"layers.#.router", "layers.#.block_sparse_moe.gate.weight"},
    {"layers.#.experts.gate", "layers.#.block_sparse_moe.experts.@.w1.weight", true},
    {"layers.#.experts.up", "layers.#.block_sparse_moe.experts.@.w3.weight", true},
    {"layers.#.experts.down", "layers.#.block_sparse_moe.experts.@.w2.weight"}};
constexpr auto qwen3_moe_tensors = join(llama_tensors, qwen3_expert_tensors),
               mixtral_tensors = join(llama_tensors, mixtral_expert_tensors);
constexpr config_rule of_both[]{{"vocab_size", "vocab"},
                                {"num_hidden_layers", "layers"},
                                {"hidden_size", "hidden"},
                                {"num_attention_heads", "heads"},
                                {"intermediate_size", "ffn", "", "", nullptr, true},
                                {"hidden_act", "", "\"silu\"", "\"silu\""},
                                {"rms_norm_eps", "norm_eps", "", "1e-06"},
                                {"rope_theta", "theta", "", "10000.0"},
                                {"rope_type", "rope_type", "", "\"default\""},
                                {"factor", "rope_factor"},
                                {"low_freq_factor", "low_freq_factor"},
                                {"high_freq_factor", "high_freq_factor"},
                                {"original_max_position_embeddings", "original_positions"},
                                {"attention_bias", "", "false", "false"},
                                {"tie_word_embeddings", "tied", "", "false"}};
/// The width of a head where a config does not state it.
json head_of_hidden(const json& c) {
  const auto hidden = size_in(c, "hidden_size"), heads = size_in(c, "num_attention_heads");
  return hidden && heads ? json(*hidden / *heads) : json();
}
/// The key-value heads of a config that states null for them.
json heads_of_queries(const json& c) { return value_of(c, "num_attention_heads"); }
constexpr config_rule of_llama[]{{"num_key_value_heads", "kv_heads", "", "", heads_of_queries},
                                 {"head_dim", "head_dim", "", "", head_of_hidden},
                                 {"mlp_bias", "", "false", "false"}};
constexpr config_rule of_qwen3[]{
    {"num_key_value_heads", "kv_heads", "", "",
     [](const json& c) { return c.contains("num_key_value_heads") ? heads_of_queries(c) : json(32); }},
    {"head_dim", "head_dim", "", "128"},
    {"use_sliding_window", "", "false", "false"}};
constexpr config_rule of_qwen3_moe[]{
    {"num_key_value_heads", "kv_heads", "", "4"},
    {"head_dim", "head_dim", "", "", head_of_hidden},
    {"use_sliding_window", "", "false", "false"},
    {"num_experts", "experts", "", "128",
     [](const json& c) { return c.value("num_local_experts", json(128)); }},  // the key of transformers 5
    {"num_experts_per_tok", "top_k", "", "8"},
    {"moe_intermediate_size", "expert_ffn", "", "768"},
    {"norm_topk_prob", "norm_topk_prob", "", "false"},
    {"decoder_sparse_step", "decoder_sparse_step", "", "1"},
    {"mlp_only_layers", "mlp_only_layers", "", "[]"}};
constexpr config_rule mixtral_config[]{
    {"vocab_size", "vocab"},
    {"num_hidden_layers", "layers"},
    {"hidden_size", "hidden"},
    {"num_attention_heads", "heads"},
    {"num_key_value_heads", "kv_heads", "", "",
     [](const json& c) { return c.contains("num_key_value_heads") ? heads_of_queries(c) : json(8); }},
    {"head_dim", "head_dim", "", "", head_of_hidden},
    {"intermediate_size", "ffn"},
    {"num_local_experts", "experts", "", "8"},
    {"num_experts_per_tok", "top_k", "", "2"},
    {"hidden_act", "", "\"silu\"", "\"silu\""},
    {"rms_norm_eps", "norm_eps", "", "1e-05"},
    {"rope_theta", "theta", "", "1000000.0"},
    {"rope_type", "rope_type", "", "\"default\""},
    {"factor", "rope_factor"},
    {"low_freq_factor", "low_freq_factor"},
    {"high_freq_factor", "high_freq_factor"},
    {"original_max_position_embeddings", "original_positions"},
    {"sliding_window", "", "null"},
    {"router_jitter_noise", "", "0.0", "0.0"},
    {"tie_word_embeddings", "tied", "", "false"}};
constexpr auto llama_config = join(of_both, of_llama), qwen3_config = join(of_both, of_qwen3);
constexpr auto qwen3_moe_config = join(of_both, of_qwen3_moe);
constexpr std::string_view llama_skipped[]{".rotary_emb.inv_freq"};

constexpr model_family families[]{{"gpt2", "GPT2LMHeadModel", "transformer.", "n_positions", gpt2_tensors,
                                   gpt2_config, gpt2_skipped, gpt2_defaults},
                                  {"llama",
                                   "LlamaForCausalLM",
                                   "model.",
                                   "max_position_embeddings",
                                   llama_tensors,
                                   llama_config,
                                   llama_skipped,
                                   {}},
                                  {"qwen3",
                                   "Qwen3ForCausalLM",
                                   "model.",
                                   "max_position_embeddings",
                                   llama_tensors,
                                   qwen3_config,
                                   llama_skipped,
                                   {}},
                                  {"qwen3_moe",
                                   "Qwen3MoeForCausalLM",
                                   "model.",
                                   "max_position_embeddings",
                                   qwen3_moe_tensors,
                                   qwen3_moe_config,
                                   llama_skipped,
                                   {}},
                                  {"mixtral",
                                   "MixtralForCausalLM",
                                   "model.",
                                   "max_position_embeddings",
                                   mixtral_tensors,
                                   mixtral_config,
                                   llama_skipped,
                                   {}}};

}  // namespace

const model_family* find_family(std::string_view name) {
  const auto at = std::find_if(std::begin(families), std::end(families),
                               [&](const model_family& f) { return f.name == name; });
  return at == std::end(families) ? nullptr : at;
}

std::string family_names() {
  std::string all;
  for (const model_family& f : families) all += (all.empty() ? "" : ", ") + std::string(f.name);
  return all;
}

std::vector<std::string> named_rule::names(std::size_t experts) const {
  if (!rule.of_experts()) return {theirs};
  std::vector<std::string> all;
  for (std::size_t e = 0; e < experts; ++e)
    all.push_back(std::string(theirs).replace(theirs.find('@'), 1, std::to_string(e)));
  return all;
}

named_rule rule_of(const model_family& family, std::string_view plan, const std::string& ours) {
  constexpr std::string_view layers = "layers.";
  std::string general = ours, number;
  if (ours.starts_with(layers)) {
    const auto end = std::find_if_not(ours.begin() + layers.size(), ours.end(),
                                      [](unsigned char c) { return std::isdigit(c); });
    number.assign(ours.begin() + layers.size(), end);
    general.replace(layers.size(), number.size(), "#");
  }
  for (const tensor_rule& rule : family.tensors) {
    if (rule.ours != general) continue;
    std::string theirs(rule.theirs);
    if (const auto at = theirs.find('#'); at != theirs.npos) theirs.replace(at, 1, number);
    return {rule, rule.ours == "lm_head" ? theirs : std::string(family.prefix) + theirs};
  }
  throw failure(1, "RC6545: plan {}: parameter {} has no tensor in Hugging Face's {} models", plan, ours,
                family.name);
}

}  // namespace rankc::runtime
