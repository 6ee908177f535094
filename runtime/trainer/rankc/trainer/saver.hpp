// SPDX-License-Identifier: Apache-2.0
// Saves of a run: taken between two steps, and written by a thread while training goes on. A save that fails
// costs the run nothing but that save; the next one tries again.
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
  /// Make the folder and lock it; of its checkpoints the newest `keep` stay (0: all).
  /// Errors: failure (65) where it cannot be written, or another run saves there.
  saver(const description&, const std::filesystem::path& directory, int keep, const placement& where);
  ~saver();

  /// Save what the engine has now; a save that is still being written is waited for. Where ranks are
  /// processes, each calls.
  void begin(engine&, const run_state&);

  /// How a save went: its line.
  struct outcome {
    bool saved;
    std::string line;
  };
  /// Of saves that have ended since the last call.
  std::vector<outcome> news();

  /// Wait for the last save. Returns: whether it was written; true where there was none.
  bool finish();

 private:
  const description& about_;
  std::filesystem::path directory_;
  int keep_;
  placement where_;
  std::optional<folder_lock> lock_;
  std::mutex mutex_;  // of the next two
  std::vector<outcome> news_;
  bool last_saved_ = true;
  std::jthread writer_;
};

}  // namespace rankc::runtime
