// SPDX-License-Identifier: Apache-2.0
// The families of models that a search takes by their sizes.
#pragma once
#include <rankc/models/gemma3.hpp>
#include <rankc/models/glm4.hpp>
#include <rankc/models/gpt2.hpp>
#include <rankc/models/llama.hpp>
#include <rankc/models/mistral.hpp>
#include <rankc/models/mixtral.hpp>
#include <rankc/models/olmo2.hpp>
#include <rankc/models/phi3.hpp>
#include <rankc/models/qwen2.hpp>
#include <rankc/models/qwen3.hpp>
#include <rankc/models/qwen3_moe.hpp>
#include <rankc/models/smollm3.hpp>

#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace rankc::tool {

using any_model = std::variant<models::gpt2, models::llama, models::qwen2, models::qwen3, models::qwen3_moe,
                               models::mixtral, models::olmo2, models::mistral, models::smollm3, models::phi3,
                               models::glm4, models::gemma3>;

/// A family, and the sizes that it is given, in the order of its fields.
struct model_family {
  std::string_view name;
  any_model model;
  std::span<const std::string_view> sizes;
};
std::span<const model_family> model_families();

/// The family of a model.
const model_family& family_of(const any_model&);

/// A size of a model by its name; null if the model has no size of this name.
int* find_size(any_model&, std::string_view name);

/// A model in a plan: models::llama{.layers = 2, ...}.
std::string text_of(any_model);

}  // namespace rankc::tool
