// SPDX-License-Identifier: Apache-2.0
// Only one run may save into a folder. The system releases the lock when the run's process ends, however it
// ends.
#pragma once
#include <filesystem>

namespace rankc::runtime {

class folder_lock {
 public:
  /// Lock the file `.lock` of a folder, and write into it which process has it.
  /// Errors: failure (65) that names the run that has the lock.
  explicit folder_lock(const std::filesystem::path& folder);
  ~folder_lock();
  folder_lock(const folder_lock&) = delete;

  /// False where the file system does not offer locks.
  bool is_held() const { return is_held_; }

 private:
  int descriptor_;
  bool is_held_ = false;
};

}  // namespace rankc::runtime
