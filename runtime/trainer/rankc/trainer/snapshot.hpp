// SPDX-License-Identifier: Apache-2.0
// A checkpoint in host memory: what the ranks of this process write, as it was between two steps, so that it
// can be written while training goes on.
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
  /// Copy what the engine's ranks hold, each element of the model once over all processes.
  snapshot(engine&, const run_state&);

  const run_state& state() const { return state_; }

  /// Write the files of this process's ranks, and wait until they are on disk.
  /// Returns: a line for each, "CHECKSUM NAME", of its header.
  /// Errors: failure (65) that names the file.
  std::string write_files(const std::filesystem::path& folder) const;

 private:
  /// What a rank writes: tensors, and their values side by side as the file stores them.
  struct contents {
    int rank;
    std::vector<safetensors_writer::tensor> tensors;
    std::vector<unsigned char> bytes;
  };
  run_state state_;
  std::vector<contents> files_;
};

}  // namespace rankc::runtime
