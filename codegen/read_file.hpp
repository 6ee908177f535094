// SPDX-License-Identifier: Apache-2.0
// Files that a command reads whole.
#pragma once
#include <rankc/runtime/failure.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

namespace rankc::codegen {

[[noreturn]] inline void refuse_unreadable(const std::filesystem::path& file, const std::string& why) {
  throw runtime::failure(1, "RC7902: the file {} cannot be read: {}", file, why);
}

/// Check that a path is a regular file, links followed: reading a FIFO or a device could wait, or not end.
/// Errors: RC7902.
inline void require_regular_file(const std::filesystem::path& file) {
  std::error_code error;
  const auto kind = std::filesystem::status(file, error).type();
  if (error) refuse_unreadable(file, error.message());
  if (kind == std::filesystem::file_type::directory) refuse_unreadable(file, std::strerror(EISDIR));
  if (kind != std::filesystem::file_type::regular) refuse_unreadable(file, "it is not a regular file");
}

/// The text of a whole file.
/// Errors: RC7902 where it cannot be read or is not a regular file.
inline std::string read_file(const std::filesystem::path& file) {
  require_regular_file(file);
  std::ifstream in(file, std::ios::binary);
  if (!in) refuse_unreadable(file, std::strerror(errno));
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace rankc::codegen
