// SPDX-License-Identifier: Apache-2.0
// Records the calls that change files, in order; the linker's --wrap redirects them here. A test can disable
// locks, flushes of folders and exchanges of names, end the process before a call, or make a call fail.
#pragma once
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

namespace testing {

/// During its lifetime, calls that name files below `folder` are recorded: "open F" (for writing), "write F",
/// "flush F", "rename F -> G", "exchange F <-> G", "remove F", with paths relative to `folder`.
class file_calls {
 public:
  explicit file_calls(const std::filesystem::path& folder);
  ~file_calls();
  file_calls(const file_calls&) = delete;

  std::vector<std::string> seen;
  int end_before = -1;                  // the process ends before this call; -1: never
  int fail_from = -1, fail_until = -1;  // calls that fail with `error`, except removals
  int error = 0;
  bool throws = false;      // a failing flush throws std::bad_alloc, as a library may
  bool locks = true;        // whether the file system has locks
  int lock_error = ENOLCK;  // the error if locks are not supported
  int folder_error = 0;     // the error of flushing a folder; 0: none
  bool exchanges = true;    // whether the file system can exchange names

  /// Records a call, and may end the process. Returns: true if the call must fail.
  bool note(const std::string& call);
  /// The recorded form of a path; empty if it is not below the folder.
  std::string name(const std::filesystem::path&) const;

 private:
  std::filesystem::path folder_;
  std::mutex mutex_;
};

}  // namespace testing
