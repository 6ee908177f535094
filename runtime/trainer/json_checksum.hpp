// SPDX-License-Identifier: Apache-2.0
// Small JSON files that carry a checksum of themselves.
#pragma once
#include "read_file.hpp"
#include <rankc/trainer/checksum.hpp>

#include <nlohmann/json.hpp>
#include <exception>
#include <filesystem>
#include <string>

namespace rankc::runtime {

inline std::string checksum_of(nlohmann::ordered_json root) {
  root.erase("checksum");
  return checksum::of(root.dump());
}

/// Errors: failure that names the file, where it cannot be read or its checksum is another.
inline nlohmann::ordered_json read_checked_json(const std::filesystem::path& file, int exit_code) {
  const auto root = nlohmann::ordered_json::parse(contents_of_file(file, exit_code), nullptr, false);
  if (!root.is_object() || root.value("checksum", nlohmann::ordered_json()) != checksum_of(root))
    throw failure(exit_code, "RC6555: {} does not match its own checksum; the file is damaged", file);
  return root;
}

/// For a file that matches its checksum, but lacks a value or has one of another type.
[[noreturn]] inline void refuse_other_version(const std::filesystem::path& file, int exit_code,
                                              const std::exception& why) {
  throw failure(exit_code, "RC6556: {} was written by another version of rankc: {}", file, why.what());
}

}  // namespace rankc::runtime
