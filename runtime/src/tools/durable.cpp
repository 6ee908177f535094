// SPDX-License-Identifier: Apache-2.0
#include <rankc/runtime/tools/durable.hpp>

#include "refusal.hpp"

#include <fmt/format.h>
#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace rankc::runtime {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path) {
  throw refusal(65, "{}: cannot be written: {}", path.string(), std::strerror(errno));
}

}  // namespace

void write_durably(const std::filesystem::path& file, std::string_view text) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::fopen(file.c_str(), "wb"), &std::fclose);
  if (!out || std::fwrite(text.data(), 1, text.size(), out.get()) != text.size()) fail(file);
  if (std::fflush(out.get()) != 0 || fsync(fileno(out.get())) != 0) fail(file);
  if (std::fclose(out.release()) != 0) fail(file);
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
