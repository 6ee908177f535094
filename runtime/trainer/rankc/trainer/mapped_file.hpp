// SPDX-License-Identifier: Apache-2.0
// A file in memory as the system maps it: read from disk where it is looked at, and not before.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace rankc::runtime {

struct mapped_place;

class mapped_file {
 public:
  /// Map a whole file for reading. It must not be cut while this lives: the system ends a program that reads
  /// past it, with SIGBUS (bus_error.hpp).
  /// Errors: failure (1) where it cannot be read, or is no regular file.
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
