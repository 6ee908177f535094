// SPDX-License-Identifier: Apache-2.0
// The tensors of a Hugging Face folder by their names in the files.
#pragma once
#include "hugging_face_names.hpp"
#include <rankc/trainer/piece_source.hpp>

#include <filesystem>
#include <memory>
#include <string>

namespace rankc::runtime {

/// True if a folder is a Hugging Face folder: it has config.json.
bool is_hugging_face(const std::filesystem::path& folder);

class hugging_face_files {
 public:
  /// Opens model.safetensors of a folder, or the files that model.safetensors.index.json names.
  /// Errors: failure (1) that names the file.
  hugging_face_files(const hugging_face_model&, const std::filesystem::path& folder);

  piece_source& tensors() { return *tensors_; }
  const piece_source& tensors() const { return *tensors_; }

  /// Translates the model's name of a tensor into the name in these files. Files of a base model omit the
  /// prefix.
  std::string name_of(const std::string& name) const;

 private:
  std::string prefix_;
  std::unique_ptr<piece_source> tensors_;
  bool is_bare_;
};

}  // namespace rankc::runtime
