// SPDX-License-Identifier: Apache-2.0
// Small JSON files that carry a checksum of themselves.
#pragma once
#include <rankc/launch/refusal.hpp>
#include <rankc/trainer/checksum.hpp>

#include <nlohmann/json.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace rankc::runtime {

inline std::string checksum_of(nlohmann::ordered_json root) {
  root.erase("checksum");
  return checksum::of(root.dump());
}

inline std::string contents_of_file(const std::filesystem::path& file, int exit_code) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw refusal(exit_code, "{}: cannot be read", file.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Errors: failure that names the file, where it cannot be read or its checksum is another.
inline nlohmann::ordered_json read_checked_json(const std::filesystem::path& file, int exit_code) {
  const auto root = nlohmann::ordered_json::parse(contents_of_file(file, exit_code), nullptr, false);
  if (!root.is_object() || root.value("checksum", nlohmann::ordered_json()) != checksum_of(root))
    throw refusal(exit_code, "{}: is damaged: it does not match its own checksum", file.string());
  return root;
}

}  // namespace rankc::runtime
