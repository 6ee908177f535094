// SPDX-License-Identifier: Apache-2.0
#include "model_families.hpp"

#include <fmt/format.h>

namespace rankc::tool {

namespace {

constexpr std::string_view gpt2_sizes[]{"layers", "hidden", "heads", "ffn", "vocab"};
constexpr std::string_view llama_sizes[]{"layers", "hidden", "heads", "kv_heads", "ffn", "vocab"};
constexpr std::string_view qwen3_sizes[]{"layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab"};
constexpr std::string_view qwen3_moe_sizes[]{"layers",  "hidden", "heads",      "kv_heads", "head_dim",
                                             "experts", "top_k",  "expert_ffn", "vocab"};
constexpr std::string_view mixtral_sizes[]{"layers",  "hidden", "heads",      "kv_heads",
                                           "experts", "top_k",  "expert_ffn", "vocab"};

template <class Model>
constexpr model_family family(std::span<const std::string_view> sizes) {
  return {Model::family, Model{}, sizes};
}
const model_family families[]{
    family<models::gpt2>(gpt2_sizes),           family<models::llama>(llama_sizes),
    family<models::qwen2>(llama_sizes),         family<models::qwen3>(qwen3_sizes),
    family<models::qwen3_moe>(qwen3_moe_sizes), family<models::mixtral>(mixtral_sizes),
    family<models::olmo2>(llama_sizes),         family<models::mistral>(llama_sizes),
    family<models::smollm3>(llama_sizes),       family<models::phi3>(llama_sizes),
    family<models::glm4>(llama_sizes),          family<models::gemma3>(qwen3_sizes)};

}  // namespace

std::span<const model_family> model_families() { return families; }

const model_family& family_of(const any_model& model) { return families[model.index()]; }

int* find_size(any_model& model, std::string_view name) {
  return std::visit(
      [&](auto& m) -> int* {
        if (name == "layers") return &m.layers;
        if (name == "hidden") return &m.hidden;
        if (name == "heads") return &m.heads;
        if (name == "vocab") return &m.vocab;
        if constexpr (requires { m.kv_heads; })
          if (name == "kv_heads") return &m.kv_heads;
        if constexpr (requires { m.head_dim; })
          if (name == "head_dim") return &m.head_dim;
        if constexpr (requires { m.ffn; })
          if (name == "ffn") return &m.ffn;
        if constexpr (requires { m.experts; }) {
          if (name == "experts") return &m.experts;
          if (name == "top_k") return &m.top_k;
          if (name == "expert_ffn") return &m.expert_ffn;
        }
        return nullptr;
      },
      model);
}

std::string text_of(any_model model) {
  const model_family& of = family_of(model);
  std::string sizes;
  for (const std::string_view name : of.sizes)
    sizes += fmt::format("{}.{} = {}", sizes.empty() ? "" : ", ", name, *find_size(model, name));
  const int used = std::visit([](const auto& m) { return m.vocab_used; }, model);
  if (used != 0) sizes += fmt::format(", .vocab_used = {}", used);
  return fmt::format("models::{}{{{}}}", of.name, sizes);
}

}  // namespace rankc::tool
