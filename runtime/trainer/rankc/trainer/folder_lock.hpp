// SPDX-License-Identifier: Apache-2.0
// One run alone may save into a folder. The lock ends with the process that has it, however that ends.
#pragma once
#include <filesystem>

namespace rankc::runtime {

class folder_lock {
 public:
  /// Take the lock of a folder: its file `.lock`, which says who has it.
  /// Errors: failure (65) that names the run that has it.
  explicit folder_lock(const std::filesystem::path& folder);
  ~folder_lock();
  folder_lock(const folder_lock&) = delete;

 private:
  int descriptor_;
};

}  // namespace rankc::runtime
