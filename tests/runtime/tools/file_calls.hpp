// SPDX-License-Identifier: Apache-2.0
// The calls by which the tools change files, in order, as the linker's --wrap lets a test see them; and a file system
// that cannot exchange names, or a process that ends before one of the calls.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace testing {

/// While this lives, calls that name files below `folder` are recorded: "write F" (opened for writing), "flush F",
/// "rename F -> G", "exchange F <-> G", "remove F", with paths from `folder` on.
class file_calls {
 public:
  explicit file_calls(const std::filesystem::path& folder);
  ~file_calls();
  file_calls(const file_calls&) = delete;

  std::vector<std::string> seen;
  int end_before = -1;     // the call before which the process ends; -1: none
  bool exchanges = true;   // whether the file system can exchange names

  /// Note a call; the process may end here.
  void note(const std::string& call);
  /// A path as it is noted; empty where it is not below the folder.
  std::string name(const std::filesystem::path&) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace testing
