// SPDX-License-Identifier: Apache-2.0
// Files that must survive a crash. Each file is written completely and flushed to disk before another file
// refers to it. Nothing here writes through a link.
#pragma once
#include <rankc/runtime/failure.hpp>

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace rankc::runtime {

/// The exit code of a checkpoint that cannot be written.
inline constexpr int checkpoint_code = 65;

[[noreturn]] inline void fail_to_write(const std::filesystem::path& file, int code, int error = errno) {
  throw failure(code, "RC5005: {} cannot be written: {}", file, std::strerror(error));
}

/// True if an error of fsync or rename means that the file system does not offer the call, as some network
/// and object stores do not.
inline bool is_unsupported(int error) { return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP; }

/// A file that is written from its start, then flushed and closed. Without `close` the data is not flushed.
/// Errors: failure (`code`) that names the file, here and below.
class durable_file {
 public:
  /// Creates a file. An existing name, also a link, is an error.
  explicit durable_file(const std::filesystem::path& file, int code = checkpoint_code)
      : durable_file(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666), file,
                     code) {
    if (descriptor_ < 0) fail();
  }
  /// Takes a descriptor that is open for writing. Failures name it `file`.
  durable_file(int descriptor, const std::filesystem::path& file, int code)
      : name_(file.string()), code_(code), descriptor_(descriptor) {}
  durable_file(const durable_file&) = delete;
  ~durable_file() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  void append(const void* data, std::size_t bytes) {
    const auto* from = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t written = ::write(descriptor_, from, bytes);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail();
      from += written;
      bytes -= static_cast<std::size_t>(written);
    }
  }

  /// Appends a whole record or, on failure, nothing of it.
  void append_whole(std::string_view record) {
    const off_t before = ::lseek(descriptor_, 0, SEEK_END);
    try {
      append(record.data(), record.size());
    } catch (const failure&) {
      [[maybe_unused]] const int none = ::ftruncate(descriptor_, before);  // a pipe cannot be truncated
      throw;
    }
  }

  /// Replaces bytes that were written before.
  void replace(std::size_t offset, std::string_view bytes) {
    if (::lseek(descriptor_, static_cast<off_t>(offset), SEEK_SET) < 0) fail();
    append(bytes.data(), bytes.size());
  }

  /// Waits until the file is on disk. Pipes, terminals and some file systems cannot be flushed.
  void flush() {
    if (::fsync(descriptor_) != 0 && !is_unsupported(errno) && errno != EROFS) fail();
  }

  void close() {
    flush();
    if (::close(std::exchange(descriptor_, -1)) != 0) fail();
  }

  int descriptor() const { return descriptor_; }

 private:
  [[noreturn]] void fail() const { fail_to_write(name_, code_); }

  std::string name_;
  int code_;
  int descriptor_;
};

/// Waits until the entries of a folder are on disk.
/// Returns: false if the file system cannot flush folders, or this process may not read the folder.
inline bool flush_folder(const std::filesystem::path& folder, int code = checkpoint_code) {
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0 && errno == EACCES) return false;
  if (descriptor < 0) fail_to_write(folder, code);
  const int result = ::fsync(descriptor);
  const int error = errno;
  ::close(descriptor);
  if (result != 0 && !is_unsupported(error)) fail_to_write(folder, code, error);
  return result == 0;
}

/// Writes a small file under a new name and waits until it is on disk.
inline void write_durably(const std::filesystem::path& file, std::string_view text,
                          int code = checkpoint_code) {
  durable_file out(file, code);
  out.append(text.data(), text.size());
  out.close();
}

/// Renames a file or folder and flushes its parent folder.
inline void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to,
                           int code = checkpoint_code) {
  if (std::rename(from.c_str(), to.c_str()) != 0) fail_to_write(to, code);
  flush_folder(to.parent_path(), code);
}

/// Renames to a name that does not exist yet.
/// Returns: false if the name exists; nothing has changed then.
inline bool rename_if_free(const std::filesystem::path& from, const std::filesystem::path& to,
                           int code = checkpoint_code) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) {
    flush_folder(to.parent_path(), code);
    return true;
  }
  if (errno == EEXIST) return false;
  if (!is_unsupported(errno)) fail_to_write(to, code);
  if (std::filesystem::exists(std::filesystem::symlink_status(to))) return false;
  rename_durably(from, to, code);
  return true;
}

/// Exchanges the names of two files or folders of one folder atomically, and flushes the folder.
/// Returns: false if the file system cannot exchange names; nothing has changed then.
inline bool exchange_durably(const std::filesystem::path& one, const std::filesystem::path& other) {
  if (::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) != 0) {
    if (is_unsupported(errno)) return false;
    fail_to_write(other, checkpoint_code);
  }
  flush_folder(other.parent_path());
  return true;
}

}  // namespace rankc::runtime
