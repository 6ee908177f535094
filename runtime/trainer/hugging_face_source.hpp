// SPDX-License-Identifier: Apache-2.0
// The tensors of a Hugging Face folder under the names and in the layout of a plan.
#pragma once
#include "hugging_face_config.hpp"
#include "hugging_face_files.hpp"
#include <rankc/trainer/parameters.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace rankc::runtime {

class hugging_face_source : public tensor_source {
 public:
  /// Opens a folder.
  /// Errors: failure (1) that lists every difference of the config or of the tensors from the plan's, and for
  /// a head that differs from the token table if the plan ties the two.
  hugging_face_source(const description&, const std::vector<global_parameter>&,
                      const std::filesystem::path& folder);

  const std::string& name() const override { return files_.tensors().name(); }
  const std::map<std::string, std::vector<std::size_t>>& shapes() const override { return shapes_; }
  /// The number of rows of the vocabulary's tensors: the size that the folder's config states.
  std::size_t vocabulary() const override { return vocabulary_; }
  std::vector<std::string> notes() const override { return notes_; }
  void check(const std::string& tensor, const area&) override;
  void read(const std::string& tensor, const area&, double* to) const override;

 private:
  /// The rows of a plan tensor in the files: part of one tensor, or `rows` rows in each of several.
  struct tensor_rows {
    std::vector<std::string> theirs;
    bool transposed;
    std::size_t first_row, rows;
    head_order heads;
    double added;
  };
  hugging_face_source(const description&, const hugging_face_model&, const free_sizes&,
                      const std::vector<global_parameter>&, const std::filesystem::path& folder);
  void refuse_other_copy(const description&, const std::string& copy, const std::string& tied_to) const;
  /// Visits the tensors in the files that hold an area of a plan tensor. `visit` gets the name, the area in
  /// the file's tensor, and the offset of its first row in the plan's area.
  template <class F>
  static void each_of_theirs(const tensor_rows&, const area&, F visit);

  hugging_face_files files_;
  std::map<std::string, tensor_rows> rows_of_;
  std::map<std::string, std::vector<std::size_t>> shapes_;
  std::size_t vocabulary_;
  std::vector<std::string> notes_;
};

}  // namespace rankc::runtime
