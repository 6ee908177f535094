// SPDX-License-Identifier: Apache-2.0
// The tensors of a Hugging Face folder under a plan's names, as the plan has them.
#pragma once
#include "hugging_face_config.hpp"
#include <rankc/trainer/parameters.hpp>
#include <rankc/trainer/piece_source.hpp>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace rankc::runtime {

/// Whether a folder is one of theirs: it has config.json.
bool is_hugging_face(const std::filesystem::path& folder);

class hugging_face_source : public tensor_source {
 public:
  /// Open a folder with config.json and model.safetensors, or the files that model.safetensors.index.json
  /// names.
  /// Errors: failure (1) that lists every difference of its config, or of its tensors, from the plan's.
  hugging_face_source(const description&, const std::vector<global_parameter>&,
                      const std::filesystem::path& folder);

  const std::string& name() const override { return files_->name(); }
  const std::map<std::string, std::vector<std::size_t>>& shapes() const override { return shapes_; }
  void check(const std::string& tensor, const area&) override;
  void read(const std::string& tensor, const area&, double* to) const override;

 private:
  /// Where a tensor of ours lies: in one of theirs, from a row of it on, or so many rows in each of several.
  struct place {
    std::vector<std::string> theirs;
    bool transposed;
    std::size_t first_row, rows;
  };
  /// Visit the tensors of theirs that an area of ours lies in, with the part there and the area's row at
  /// which it begins.
  template <class F>
  static void each_of_theirs(const place&, const area&, F visit);

  std::unique_ptr<piece_source> files_;
  std::map<std::string, place> places_;
  std::map<std::string, std::vector<std::size_t>> shapes_;
};

}  // namespace rankc::runtime
