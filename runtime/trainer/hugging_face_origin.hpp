// SPDX-License-Identifier: Apache-2.0
// The Hugging Face folder that a run began with. A plan does not hold everything that the folder holds: an
// export copies the other values of config.json, the rows of later positions, and the files of the tokenizer.
#pragma once
#include "hugging_face_config.hpp"
#include "hugging_face_files.hpp"
#include <rankc/runtime/output_folder.hpp>

#include <nlohmann/json.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rankc::runtime {

/// The folder that a checkpoint's weights came from. run.json names it, or names an earlier checkpoint that
/// leads to it. `asked`: the folder's present place, "none" for an export without it, or empty.
/// Errors: failure (1) if the folder that run.json names is gone, or `asked` is not a Hugging Face folder.
std::optional<std::filesystem::path> find_origin(const description&, const std::filesystem::path& checkpoint,
                                                 const std::string& asked);

class hugging_face_origin {
 public:
  /// Errors: failure (1) if the folder cannot be read or is not of the plan's model.
  hugging_face_origin(const description&, const hugging_face_model&, const std::filesystem::path& folder);

  const nlohmann::ordered_json& config() const { return config_; }
  const free_sizes& sizes() const { return sizes_; }
  /// Reads rows of a position table. `name`: the model's name of the table.
  /// Errors: failure (1) if the folder's files have another number of rows than its config states.
  void read(const std::string& name, const area&, double* to);

 private:
  nlohmann::ordered_json config_;
  free_sizes sizes_;
  hugging_face_files files_;
};

/// The files of a folder that an export copies: tokenizer files and generation_config.json.
std::vector<std::string> copied_files(const std::filesystem::path& folder);

}  // namespace rankc::runtime
