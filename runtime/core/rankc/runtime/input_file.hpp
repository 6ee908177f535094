// SPDX-License-Identifier: Apache-2.0
// The files that commands of the generator, the tool and the trainer read. Only regular files are read, so
// neither opening nor reading one waits for another process.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

namespace rankc::runtime {

/// Reads some bytes of an open file.
/// Returns: the number of bytes, less than `bytes` only at the end of the file; -1 with errno on failure.
inline ssize_t read_fully(int descriptor, std::size_t offset, void* to, std::size_t bytes) {
  auto* into = static_cast<char*>(to);
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(descriptor, into + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

class input_file {
 public:
  /// Opens a file for reading. Links are followed. `problem` tells if it can be read. O_NONBLOCK prevents
  /// that a FIFO waits for a writer. O_NOCTTY prevents that a terminal becomes the controlling terminal of
  /// the process.
  explicit input_file(const std::filesystem::path& file)
      : descriptor_(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {
    struct stat about{};
    if (descriptor_ < 0 || ::fstat(descriptor_, &about) != 0) problem_ = std::strerror(errno);
    else if (!S_ISREG(about.st_mode))
      problem_ = std::string("it is ") + kind_of(about.st_mode) + ", not a regular file";
    else size_ = static_cast<std::size_t>(about.st_size);
  }
  ~input_file() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  input_file(input_file&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)),
        size_(other.size_),
        problem_(std::move(other.problem_)) {}
  input_file& operator=(input_file&&) = delete;

  /// The reason why the file cannot be read; empty if it can be read.
  const std::string& problem() const { return problem_; }
  int descriptor() const { return descriptor_; }
  /// The size in bytes when the file was opened.
  std::size_t size() const { return size_; }

  /// The bytes of the whole file. If they cannot be read, `problem` tells why.
  std::string contents() {
    std::string text(size_, '\0');
    const ssize_t got = problem_.empty() ? read_fully(descriptor_, 0, text.data(), text.size()) : 0;
    if (got < 0) problem_ = std::strerror(errno);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }

 private:
  static const char* kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "a folder";
    if (S_ISFIFO(mode)) return "a FIFO";
    return S_ISSOCK(mode) ? "a socket" : "a device";
  }

  int descriptor_;
  std::size_t size_ = 0;
  std::string problem_;
};

}  // namespace rankc::runtime
