// SPDX-License-Identifier: Apache-2.0
// The bytes of a file. A file that begins like gzip or zstd is decompressed.
#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>

namespace rankc::tool {

class byte_source {
 public:
  virtual ~byte_source() = default;

  /// Reads the next bytes. Returns: how many were read; 0 at the end.
  /// Errors: failure (1) that names the file if it cannot be read or is not what its beginning says.
  virtual std::size_t read(char* to, std::size_t most) = 0;
};

/// Errors: failure (1) if the file cannot be read, or if this build lacks the library of its compression.
std::unique_ptr<byte_source> open_bytes(const std::filesystem::path&);

}  // namespace rankc::tool
