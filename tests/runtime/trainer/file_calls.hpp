// SPDX-License-Identifier: Apache-2.0
// The calls by which the tools change files, in their order; the linker's --wrap passes them here. A test may
// take locks, flushes of folders and exchanges of names from the file system, end the process before a call,
// or let a call fail.
#pragma once
#include <cerrno>
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
  bool throws = false;      // a flush that fails throws std::bad_alloc, as a library may
  bool locks = true;        // whether the file system has locks
  int lock_error = ENOLCK;  // of a file system without locks
  int folder_error = 0;     // of flushing a folder; 0: it can be flushed
  bool exchanges = true;    // whether the file system can exchange names

  /// Note a call; the process may end here. Returns: whether the call fails.
  bool note(const std::string& call);
  /// A path as it is noted; empty where it is not below the folder.
  std::string name(const std::filesystem::path&) const;

 private:
  std::filesystem::path folder_;
  std::mutex mutex_;
};

}  // namespace testing
