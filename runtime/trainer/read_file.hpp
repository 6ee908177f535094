// SPDX-License-Identifier: Apache-2.0
// Files of checkpoints and models that are read whole.
#pragma once
#include <rankc/runtime/failure.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace rankc::runtime {

[[noreturn]] inline void fail_to_read(const std::filesystem::path& file, int exit_code, int error = errno) {
  throw failure(exit_code, "RC6585: checkpoint or model file {} cannot be read: {}", file,
                std::strerror(error));
}

/// Errors: failure (`exit_code`) that names the file.
inline std::string contents_of_file(const std::filesystem::path& file, int exit_code) {
  std::ifstream in(file, std::ios::binary);
  if (!in) fail_to_read(file, exit_code);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace rankc::runtime
