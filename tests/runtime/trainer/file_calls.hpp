// SPDX-License-Identifier: Apache-2.0
// The calls by which the tools change files, in order, as the linker's --wrap lets a test see them; a file
// system that cannot exchange names, a process that ends before one of the calls, and a call that fails.
#pragma once
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

namespace testing {

/// While this lives, calls that name files below `folder` are recorded: "open F" (for writing), "write F",
/// "flush F", "rename F -> G", "exchange F <-> G", "remove F", with paths from `folder` on.
class file_calls {
 public:
  explicit file_calls(const std::filesystem::path& folder);
  ~file_calls();
  file_calls(const file_calls&) = delete;

  std::vector<std::string> seen;
  int end_before = -1;                  // the call before which the process ends; -1: none
  int fail_from = -1, fail_until = -1;  // calls that fail with `error`; those that remove do not
  int error = 0;
  bool locks = true;      // whether the file system has locks
  bool exchanges = true;  // whether the file system can exchange names

  /// Note a call; the process may end here. Returns: whether the call fails.
  bool note(const std::string& call);
  /// A path as it is noted; empty where it is not below the folder.
  std::string name(const std::filesystem::path&) const;

 private:
  std::filesystem::path folder_;
  std::mutex mutex_;
};

}  // namespace testing
