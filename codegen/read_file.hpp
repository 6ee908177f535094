// SPDX-License-Identifier: Apache-2.0
// Reads whole files.
#pragma once
#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/input_file.hpp>

#include <filesystem>
#include <string>

namespace rankc::codegen {

/// Checks that a file can be read. Errors: RC7902.
inline void require_readable(const std::filesystem::path& file, const runtime::input_file& in) {
  if (!in.problem().empty())
    throw runtime::failure(1, "RC7902: the file {} cannot be read: {}", file, in.problem());
}

/// The text of a whole file.
/// Errors: RC7902 if it cannot be read or is not a regular file.
inline std::string read_file(const std::filesystem::path& file) {
  runtime::input_file in(file);
  std::string text = in.contents();
  require_readable(file, in);
  return text;
}

}  // namespace rankc::codegen
