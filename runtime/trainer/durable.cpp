// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/durable.hpp>

#include <rankc/launch/refusal.hpp>

#include <fmt/format.h>
#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace rankc::runtime {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path) {
  throw refusal(65, "{}: cannot be written: {}", path.string(), std::strerror(errno));
}

}  // namespace

durable_file::durable_file(const std::filesystem::path& file)
    : name_(file.string()), descriptor_(open(name_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) fail();
}

durable_file::~durable_file() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void durable_file::append(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor_, from, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail();
    from += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void durable_file::replace(std::size_t offset, std::string_view bytes) {
  if (lseek(descriptor_, static_cast<off_t>(offset), SEEK_SET) < 0) fail();
  append(bytes.data(), bytes.size());
}

void durable_file::close() {
  if (fsync(descriptor_) != 0) fail();
  const int result = ::close(descriptor_);
  descriptor_ = -1;
  if (result != 0) fail();
}

void durable_file::fail() const { runtime::fail(name_); }

void write_durably(const std::filesystem::path& file, std::string_view text) {
  durable_file out(file);
  out.append(text.data(), text.size());
  out.close();
}

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) fail(to);
  flush_folder(to.parent_path());
}

bool exchange_durably(const std::filesystem::path& one, const std::filesystem::path& other) {
  if (renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno == EINVAL || errno == ENOSYS) return false;
    fail(other);
  }
  flush_folder(other.parent_path());
  return true;
}

void flush_folder(const std::filesystem::path& folder) {
  const int descriptor = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) fail(folder);
  const int result = fsync(descriptor);
  close(descriptor);
  if (result != 0) fail(folder);
}

}  // namespace rankc::runtime
