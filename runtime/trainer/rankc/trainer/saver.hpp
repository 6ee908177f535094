// SPDX-License-Identifier: Apache-2.0
// The saves of a run. A save is a copy that is taken between two steps; a thread writes it while training
// goes on. A run survives a save that fails, and tries again at the next one.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/runtime/placement.hpp>
#include <rankc/trainer/folder_lock.hpp>
#include <rankc/trainer/run_state.hpp>

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace rankc::runtime {

class saver {
 public:
  /// Make the folder and lock it. Saves keep the newest `keep` checkpoints there, or all where it is 0.
  /// Errors: failure (65) where the folder cannot be written, or another run saves there.
  saver(const description&, const std::filesystem::path& directory, int keep, const placement& where);
  ~saver();

  /// The guarantees that the folder's file system does not give.
  const std::vector<std::string>& notes() const { return notes_; }

  /// Save the present state of the engine, after the save that is still being written. Where ranks are
  /// processes, each calls it.
  void begin(engine&, const run_state&);

  /// Whether a save succeeded, and the line that reports it.
  struct outcome {
    bool saved;
    std::string line;
  };
  /// The outcomes of saves that have ended since the last call.
  std::vector<outcome> news();

  /// Wait for the last save. Returns: whether it was written; true where there was none.
  bool finish();

 private:
  const description& about_;
  std::filesystem::path directory_;
  int keep_;
  placement where_;
  std::optional<folder_lock> lock_;
  std::vector<std::string> notes_;
  std::mutex mutex_;  // of the next two
  std::vector<outcome> news_;
  bool last_saved_ = true;
  std::jthread writer_;
};

}  // namespace rankc::runtime
