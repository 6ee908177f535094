// SPDX-License-Identifier: Apache-2.0
// A lock that lets only one run save into a folder. The system releases it when the run's process ends, even
// by a crash.
#pragma once
#include <filesystem>

namespace rankc::runtime {

class folder_lock {
 public:
  /// Locks the file `.lock` of a folder, and writes the owning process into it.
  /// Errors: failure (65) that names the run that holds the lock.
  explicit folder_lock(const std::filesystem::path& folder);
  ~folder_lock();
  folder_lock(const folder_lock&) = delete;

  /// False if the file system does not support locks.
  bool is_held() const { return is_held_; }

 private:
  int descriptor_;
  bool is_held_ = false;
};

}  // namespace rankc::runtime
