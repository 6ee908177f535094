// SPDX-License-Identifier: Apache-2.0
// config.json of a Hugging Face folder: compared with a plan, or written from one.
#pragma once
#include "hugging_face_names.hpp"
#include <rankc/runtime/program.hpp>

#include <nlohmann/json_fwd.hpp>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace rankc::runtime {

/// The sizes that a folder and a plan may differ in. Units: positions of a sequence, rows of the table of
/// tokens.
struct free_sizes {
  std::size_t positions, vocabulary;
};

/// Compare config.json with a plan.
/// Errors: failure (1) that lists every difference.
free_sizes check_config(const description&, const hugging_face_model&, const std::filesystem::path& file);

/// Sentences on values that transformers trains with and the plan does not.
std::vector<std::string> notes_on_config(const description&, const hugging_face_model&,
                                         const std::filesystem::path& file);

/// config.json of a plan's model. `dtype` is a type as PyTorch names it. With `origin`, the config of the
/// folder that the run began with, the text has every value of it, and its tokens and positions.
std::string config_text(const description&, const hugging_face_model&, const std::string& dtype,
                        const nlohmann::ordered_json* origin);

/// Whether a text is one of `config_text` that nobody has changed.
bool is_config_text(std::string_view);

}  // namespace rankc::runtime
