// SPDX-License-Identifier: Apache-2.0
// The names of checkpoint folders.
#pragma once
#include <rankc/runtime/parse.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

namespace rankc::runtime {

inline constexpr const char *latest_file = "latest", *lock_file = ".lock";
inline constexpr std::size_t longest_latest = 4096;  // the longest `latest` file, in bytes
inline constexpr std::string_view step_prefix = "step_", replaced_suffix = ".replaced";

/// The temporary name of a checkpoint that is being replaced by another of the same step. It is used if the
/// file system cannot exchange two folders.
inline std::filesystem::path replaced_folder(const std::filesystem::path& folder) {
  return folder.parent_path() / ("." + folder.filename().string() + std::string(replaced_suffix));
}

/// The step in a folder's name; -1 if the name holds none.
inline std::int64_t step_of(const std::filesystem::path& folder) {
  const std::string name = folder.filename().string();
  std::string_view rest = name;
  if (rest.starts_with('.') && rest.ends_with(replaced_suffix)) {
    rest.remove_prefix(1);
    rest.remove_suffix(replaced_suffix.size());
  }
  if (!rest.starts_with(step_prefix)) return -1;
  return parse_number<std::int64_t>(rest.substr(step_prefix.size())).value_or(-1);
}

}  // namespace rankc::runtime
