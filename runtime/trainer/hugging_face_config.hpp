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

/// The sizes in which a folder may differ from a plan.
/// Units: positions of a sequence, rows of the token table.
struct free_sizes {
  std::size_t positions, vocabulary;
};

/// Compares config.json with a plan.
/// Errors: failure (1) that lists every difference.
free_sizes check_config(const description&, const hugging_face_model&, const std::filesystem::path& file);

/// Sentences on values that transformers trains with and the plan ignores.
std::vector<std::string> notes_on_config(const description&, const hugging_face_model&,
                                         const std::filesystem::path& file);

/// config.json of a plan's model. `dtype` is PyTorch's name of a type. `origin` is the config of the folder
/// that the run began with. If it is given, the text keeps all of its values, its tokens and its positions.
std::string config_text(const description&, const hugging_face_model&, const std::string& dtype,
                        const nlohmann::ordered_json* origin);

/// True for an unedited text of `config_text`.
bool is_config_text(std::string_view);

}  // namespace rankc::runtime
