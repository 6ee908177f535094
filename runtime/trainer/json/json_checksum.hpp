// SPDX-License-Identifier: Apache-2.0
// Small JSON files with their own checksum.
#pragma once
#include "json_file.hpp"
#include <rankc/trainer/checksum.hpp>

#include <exception>

namespace rankc::runtime {

inline std::string checksum_of(nlohmann::ordered_json root) {
  root.erase("checksum");
  return checksum::of(root.dump());
}

/// Reads a file and compares it with its checksum.
/// Errors: failure (`exit_code`) that names the file.
inline nlohmann::ordered_json read_checked_json(const std::filesystem::path& file, int exit_code,
                                                const json_limits& limits = settings_limits) {
  const auto root = read_json<nlohmann::ordered_json>(file, exit_code, limits);
  if (!root.is_object() || value_of(root, "checksum") != checksum_of(root))
    throw failure(exit_code, "RC6555: {} does not match its own checksum; the file is damaged", file);
  return root;
}

/// Refuses a file that matches its checksum but has a missing value or a value of another type.
[[noreturn]] inline void refuse_other_version(const std::filesystem::path& file, int exit_code,
                                              const std::exception& why) {
  throw failure(exit_code, "RC6556: {} was written by another version of rankc: {}", file, why.what());
}

}  // namespace rankc::runtime
