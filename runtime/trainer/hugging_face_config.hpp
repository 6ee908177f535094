// SPDX-License-Identifier: Apache-2.0
// config.json of a Hugging Face folder: held to a plan, or written from one.
#pragma once
#include "hugging_face_families.hpp"
#include <rankc/runtime/program.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace rankc::runtime {

/// A program's model, as its description says.
struct described_model {
  const model_family* family;
  std::string sizes;        // JSON
  std::size_t experts = 0;  // of a layer that has some
};
/// Errors: failure (1) where there is no table of its family.
described_model model_of(const description&);

/// Hold config.json to a plan. Returns: how many positions it has.
/// Errors: failure (1) that lists every difference.
std::size_t check_config(const description&, const described_model&, const std::filesystem::path& file);

/// config.json of a plan's model; `dtype` as PyTorch names it.
std::string config_text(const description&, const described_model&, const std::string& dtype);

/// Whether a text is one that `config_text` has made, and nobody has changed.
bool is_config_text(std::string_view);

}  // namespace rankc::runtime
