// SPDX-License-Identifier: Apache-2.0
// The saves of a run. A save copies the state between two steps; a thread writes the copy while training
// continues. A run survives a failed save, and tries again at the next one.
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
  /// Creates the folder and locks it. Saves keep the newest `keep` checkpoints there; with `keep` = 0, all.
  /// Errors: failure (65) if the folder cannot be written, or another run saves there.
  saver(const description&, const std::filesystem::path& directory, int keep, const placement& where);
  ~saver();

  /// The guarantees that the folder's file system does not give.
  const std::vector<std::string>& notes() const { return notes_; }

  /// Saves the engine's state, after waiting for the save that is still being written. If ranks are
  /// processes, each of them calls it.
  void begin(engine&, const run_state&);

  /// Whether a save succeeded, and the line that reports it.
  struct outcome {
    bool saved;
    std::string line;
  };
  /// The outcomes of the saves that have ended since the last call.
  std::vector<outcome> news();

  /// Waits for the last save.
  /// Returns: true if it was written, or if there was none.
  bool finish();

 private:
  const description& about_;
  std::filesystem::path directory_;
  int keep_;
  placement where_;
  std::optional<folder_lock> lock_;
  std::vector<std::string> notes_;
  std::mutex mutex_;  // guards the next two
  std::vector<outcome> news_;
  bool last_saved_ = true;
  std::jthread writer_;
};

}  // namespace rankc::runtime
