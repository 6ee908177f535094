// SPDX-License-Identifier: Apache-2.0
// Files that a command reads at once.
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

[[noreturn]] inline void refuse_unreadable(const std::filesystem::path& file, int error) {
  throw runtime::failure(1, "RC7902: the file {} cannot be read: {}", file, std::strerror(error));
}

/// The text of a whole file.
/// Errors: RC7902 where it cannot be read, a folder among others.
inline std::string read_file(const std::filesystem::path& file) {
  std::error_code none;
  if (std::filesystem::is_directory(file, none)) refuse_unreadable(file, EISDIR);
  std::ifstream in(file, std::ios::binary);
  if (!in) refuse_unreadable(file, errno);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace rankc::codegen
