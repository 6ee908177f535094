// SPDX-License-Identifier: Apache-2.0
// A checkpoint in host memory: a copy of the data that this process's ranks write. It is taken between two
// steps, and written while training continues.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/trainer/run_state.hpp>
#include <rankc/trainer/safetensors.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace rankc::runtime {

class snapshot {
 public:
  /// Copies the shards that the engine's ranks save. Over all processes, each element of the model is copied
  /// once.
  snapshot(engine&, const run_state&);

  const run_state& state() const { return state_; }

  /// Writes the files of this process's ranks, and waits until they are on disk.
  /// Returns: a line "CHECKSUM NAME" for each file, with the checksum of its header.
  /// Errors: failure (65) that names the file.
  std::string write_files(const std::filesystem::path& folder) const;

 private:
  /// The file of a rank: tensors, and their values as contiguous bytes in the file's format.
  struct contents {
    int rank;
    std::vector<safetensors_writer::tensor> tensors;
    std::vector<unsigned char> bytes;
  };
  run_state state_;
  std::vector<contents> files_;
};

}  // namespace rankc::runtime
