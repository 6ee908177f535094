// SPDX-License-Identifier: Apache-2.0
// Whole tensors, read from pieces in safetensors files. The files are those of a checkpoint, in which each
// rank has written its shards, or files that hold each tensor whole.
#pragma once
#include <rankc/trainer/checkpoint_index.hpp>
#include <rankc/trainer/safetensors.hpp>

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace rankc::runtime {

/// The files of a checkpoint that all ranks share. COMMIT is written last; it has a line "CHECKSUM NAME" for
/// each file.
inline constexpr const char *commit_file = "COMMIT", *index_file = "index.json", *run_file = "run.json";

class piece_source : public tensor_source {
 public:
  /// Opens a checkpoint, and compares run.json and index.json with COMMIT.
  /// Errors, here and below: failure (1) that names a file which is missing or damaged.
  piece_source(const std::filesystem::path& folder, bool weights_alone);

  /// Opens files of whole tensors.
  piece_source(const std::string& name, const std::vector<std::filesystem::path>& files);

  const std::string& name() const override { return name_; }
  const std::map<std::string, std::vector<std::size_t>>& shapes() const override { return shapes_; }
  std::size_t vocabulary() const override { return vocabulary_; }
  void check(const std::string& tensor, const area&) override;
  void read(const std::string& tensor, const area&, double* to) const override;

 private:
  struct tensor {
    std::size_t dims;
    std::vector<saved_piece> pieces;
  };
  const safetensors_reader& open(const std::string& file);

  std::filesystem::path folder_;
  std::string name_;
  std::map<std::string, std::string> checksums_;  // the checkpoint's files with their checksums
  std::map<std::string, tensor> tensors_;
  std::map<std::string, std::vector<std::size_t>> shapes_;
  std::size_t vocabulary_ = 0;
  std::map<std::string, std::unique_ptr<safetensors_reader>> files_;
  std::set<std::pair<std::string, std::string>> checked_;  // file and tensor
  std::mutex mutex_;                                       // guards the two above
};

}  // namespace rankc::runtime
