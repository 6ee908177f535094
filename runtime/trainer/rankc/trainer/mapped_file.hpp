// SPDX-License-Identifier: Apache-2.0
// A file mapped into memory. The system reads a page from disk at its first access.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace rankc::runtime {

struct mapped_place;

class mapped_file {
 public:
  /// Maps a whole file for reading. The file must not become shorter while it is mapped: a read past its end
  /// raises SIGBUS (bus_error.hpp).
  /// Errors: failure (1) if the file cannot be read or is not a regular file.
  explicit mapped_file(const std::filesystem::path&);
  ~mapped_file();
  mapped_file(mapped_file&& other) noexcept;
  mapped_file& operator=(mapped_file&&) = delete;

  const std::string& name() const { return name_; }
  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  std::string name_;
  void* data_ = nullptr;
  std::size_t size_ = 0;
  mapped_place* place_ = nullptr;
};

}  // namespace rankc::runtime
