// SPDX-License-Identifier: Apache-2.0
// The files that commands of the generator, the tool and the trainer write. A file is written next to its
// place under a temporary name, flushed to disk, and then renamed. A reader finds the old file or the new
// one. A link with the file's name is replaced, not followed.
#pragma once
#include <rankc/runtime/durable.hpp>

#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <atomic>
#include <optional>
#include <system_error>
#include <vector>

namespace rankc::runtime {

/// True if a path is a pipe, a device, or a descriptor of a process. Such a path is written directly and not
/// renamed.
inline bool is_stream(const std::filesystem::path& path) {
  struct stat there{};
  if (::stat(path.c_str(), &there) != 0) return false;
  if (!S_ISREG(there.st_mode)) return !S_ISDIR(there.st_mode);
  std::error_code error;
  const std::string folder =
      std::filesystem::canonical(std::filesystem::absolute(path, error).parent_path(), error);
  return folder == "/dev" || folder.starts_with("/proc/");
}

enum class lock { held, taken, unsupported };

/// Locks an open file against other processes, without waiting. Closing the file releases the lock.
inline lock try_lock(int descriptor) {
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return lock::held;
  return errno == EWOULDBLOCK ? lock::taken : lock::unsupported;
}

/// The suffix of the names of unfinished files: ".NAME.PROCESS-NUMBER.unfinished".
inline constexpr std::string_view unfinished_end = ".unfinished";

/// Removes the files that killed runs have left in a folder while they wrote NAME, or any file if NAME is
/// empty. A file that a process still writes is locked and remains.
inline void remove_unfinished(const std::filesystem::path& folder, const std::string& name = "") {
  std::error_code error;
  std::vector<std::filesystem::path> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder.empty() ? "." : folder, error)) {
    std::string rest = entry.path().filename().string();
    if (!rest.starts_with("." + name) || !rest.ends_with(unfinished_end)) continue;
    rest.resize(rest.size() - unfinished_end.size());
    const std::size_t dot = rest.rfind('.');
    const bool is_ours = dot > 0 && dot + 1 < rest.size() && (name.empty() || dot == name.size() + 1) &&
                         rest.find_first_not_of("0123456789-", dot + 1) == rest.npos;
    if (is_ours) left.push_back(entry.path());
  }
  for (const std::filesystem::path& path : left) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) continue;
    if (try_lock(descriptor) == lock::held) std::filesystem::remove(path, error);
    ::close(descriptor);
  }
}

/// A file that is written next to its place. It is deleted unless it is put in place.
/// Errors: failure (`code`) that names the place, here and below; the previous file is unchanged.
class output_file {
 public:
  output_file(std::filesystem::path place, int code) : place_(std::move(place)), code_(code) {
    struct stat there{};
    const bool exists = ::stat(place_.c_str(), &there) == 0;
    if (!exists && errno != ENOENT) fail_to_write(place_, code_);  // for example a loop of links
    if (exists && S_ISDIR(there.st_mode)) fail_to_write(place_, code_, EISDIR);
    if (is_stream(place_)) {
      open_stream();
    } else {
      if (exists && ::access(place_.c_str(), W_OK) != 0) fail_to_write(place_, code_);
      while (!create()) {
      }
    }
  }
  output_file(const output_file&) = delete;
  ~output_file() {
    std::error_code ignored;
    if (!beside_.empty()) std::filesystem::remove(beside_, ignored);
  }

  durable_file& file() { return *file_; }
  void append(std::string_view text) { file_->append(text.data(), text.size()); }

  /// Flushes the file to disk and gives it its name. It can still be appended to, and stays locked until the
  /// object is destroyed.
  void put_in_place() {
    file_->flush();
    rename_flushed();
  }
  /// Gives its name to a file that is already on disk.
  void rename_flushed() {
    if (beside_.empty()) return;
    rename_durably(beside_, place_, code_);
    beside_.clear();
  }
  /// Puts the file in place, but only if the name does not exist yet.
  /// Returns: true if it was put in place.
  bool put_in_free_place() {
    file_->flush();
    if (beside_.empty()) return true;
    if (!rename_if_free(beside_, place_, code_)) return false;
    beside_.clear();
    return true;
  }

  const std::filesystem::path& place() const { return place_; }
  bool is_locked() const { return locked_; }

 private:
  /// Waits for the reader of a FIFO, because a script may start both at the same time.
  void open_stream() {
    constexpr int attempts = 100, ms_between = 10;
    int descriptor = -1;
    for (int n = 0; n < attempts && descriptor < 0; ++n) {
      if (n > 0) ::poll(nullptr, 0, ms_between);
      descriptor = ::open(place_.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC);
      if (descriptor < 0 && errno != ENXIO) fail_to_write(place_, code_);
    }
    if (descriptor < 0)
      throw failure(code_, "RC5024: {} has no reader; start the process that reads it first, or name a file",
                    place_);
    if (::fcntl(descriptor, F_SETFL, O_APPEND) != 0) fail_to_write(place_, code_);  // writes then block
    file_.emplace(descriptor, place_, code_);
  }

  /// Creates and locks the file under its temporary name.
  /// Returns: false if another process uses the name, or removes the file as a leftover.
  bool create() {
    static std::atomic<unsigned> count{0};
    const std::string name = "." + place_.filename().string().substr(0, 200) + "." +
                             std::to_string(getpid()) + "-" + std::to_string(count++);
    const std::filesystem::path beside = place_.parent_path() / (name + std::string(unfinished_end));
    const int descriptor = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno == EEXIST) return false;
    if (descriptor < 0) fail_to_write(place_, code_);
    const lock got = try_lock(descriptor);
    struct stat made{};
    if (got == lock::taken || ::fstat(descriptor, &made) != 0 || made.st_nlink == 0) {
      ::close(descriptor);
      return false;
    }
    file_.emplace(descriptor, place_, code_);
    beside_ = beside;
    locked_ = got == lock::held;
    return true;
  }

  std::filesystem::path place_, beside_;  // beside_: empty for a stream, and after the rename
  int code_;
  bool locked_ = false;
  std::optional<durable_file> file_;
};

/// Writes a complete file.
/// Errors: failure (`code`) that names it; the previous file is unchanged.
inline void write_output(const std::filesystem::path& place, std::string_view text, int code) {
  remove_unfinished(place.parent_path(), place.filename().string());
  output_file out(place, code);
  out.append(text);
  out.put_in_place();
}

}  // namespace rankc::runtime
