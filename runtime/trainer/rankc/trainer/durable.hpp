// SPDX-License-Identifier: Apache-2.0
// Files that must survive a crash: written whole, and on disk before anything refers to them.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace rankc::runtime {

/// A file that is written from its start, then flushed and closed. One that is left before `close` stays as
/// it is.
/// Errors: failure (65) that names the file, here and below.
class durable_file {
 public:
  explicit durable_file(const std::filesystem::path& file);
  ~durable_file();
  durable_file(const durable_file&) = delete;

  void append(const void* data, std::size_t bytes);
  /// Replace bytes that were written before.
  void replace(std::size_t offset, std::string_view bytes);
  /// Wait until all of it is on disk.
  void close();

 private:
  [[noreturn]] void fail() const;

  std::string name_;
  int descriptor_;
};

/// Write a small file and wait until it is on disk.
void write_durably(const std::filesystem::path& file, std::string_view text);

/// Rename a file or folder, and wait until its parent folder says so on disk.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// Let two files or folders of one folder change names at one moment, and wait until it says so on disk.
/// Returns: false where the file system cannot, and nothing has changed.
bool exchange_durably(const std::filesystem::path& one, const std::filesystem::path& other);

/// Wait until the entries of a folder are on disk.
void flush_folder(const std::filesystem::path& folder);

}  // namespace rankc::runtime
