// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/input_file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

namespace rankc::runtime {
namespace {

namespace fs = std::filesystem;

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  return S_ISSOCK(mode) ? "a socket" : "a device";
}

}  // namespace

// A FIFO without O_NONBLOCK would wait for a writer, and a terminal without O_NOCTTY could become the
// process's.
input_file::input_file(const fs::path& file)
    : descriptor_(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {
  struct stat about{};
  if (descriptor_ < 0 || ::fstat(descriptor_, &about) != 0) problem_ = std::strerror(errno);
  else if (!S_ISREG(about.st_mode))
    problem_ = std::string("it is ") + kind_of(about.st_mode) + ", not a regular file";
  size_ = static_cast<std::size_t>(about.st_size);
}

input_file::input_file(input_file&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      problem_(std::move(other.problem_)) {}

input_file::~input_file() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

ssize_t read_fully(int descriptor, std::size_t offset, void* to, std::size_t bytes) {
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

void fail_to_read(const fs::path& file, int exit_code, const std::string& problem) {
  throw failure(exit_code, "RC6585: checkpoint or model file {} cannot be read: {}", file, problem);
}

std::string contents_of_file(const fs::path& file, int exit_code, std::size_t most) {
  const input_file in(file);
  if (!in.problem().empty()) fail_to_read(file, exit_code, in.problem());
  if (in.size() > most)
    throw failure(exit_code, "RC6586: {} has {} bytes; a file of this kind has at most {}", file, in.size(),
                  most);
  std::string text(in.size(), '\0');
  const ssize_t got = read_fully(in.descriptor(), 0, text.data(), text.size());
  if (got < 0) fail_to_read(file, exit_code, std::strerror(errno));
  text.resize(static_cast<std::size_t>(got));
  return text;
}

bool is_there(const fs::path& path, int exit_code) {
  std::error_code error;
  const bool found = fs::exists(path, error);
  if (error && error != std::errc::not_a_directory) fail_to_read(path, exit_code, error.message());
  return found;
}

std::vector<fs::path> entries_of(const fs::path& folder, int exit_code) {
  std::error_code error;
  std::vector<fs::path> found;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) found.push_back(entry->path());
  if (error)
    throw failure(exit_code, "RC6587: the entries of folder {} cannot be read: {}", folder, error.message());
  std::sort(found.begin(), found.end());
  return found;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == name.npos;
}

fs::path file_within(const fs::path& folder, const std::string& name, const fs::path& named_by,
                     int exit_code) {
  if (is_plain_name(name)) return folder / name;
  throw failure(exit_code,
                "RC6588: {} names the file \"{}\"; it may name files of its own folder only, without a path",
                named_by, name);
}

}  // namespace rankc::runtime
