// SPDX-License-Identifier: Apache-2.0
#include "file_calls.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <new>
#include <system_error>

namespace fs = std::filesystem;

namespace {

testing::file_calls* active = nullptr;

/// Records a file call in the folder. Returns: true if it must fail.
template <class... Paths>
bool note(const char* what, const char* between, const Paths&... paths) {
  if (active == nullptr) return false;
  std::string text = what;
  const char* before = " ";
  for (const std::string& name : {active->name(paths)...}) {
    if (name.empty()) return false;
    text += before + name;
    before = between;
  }
  if (!active->note(text)) return false;
  errno = active->error;
  return true;
}

fs::path path_of(int descriptor) {
  std::error_code ignored;
  return active == nullptr ? fs::path()
                           : fs::read_symlink("/proc/self/fd/" + std::to_string(descriptor), ignored);
}

}  // namespace

namespace testing {

file_calls::file_calls(const fs::path& folder) : folder_(fs::canonical(folder)) { active = this; }
file_calls::~file_calls() { active = nullptr; }

bool file_calls::note(const std::string& call) {
  const std::lock_guard lock(mutex_);
  const int number = static_cast<int>(seen.size());
  if (end_before == number) _exit(0);
  seen.push_back(call);
  return number >= fail_from && number < fail_until && !call.starts_with("remove");
}

std::string file_calls::name(const fs::path& path) const {
  if (path.empty()) return "";
  const fs::path relative = fs::weakly_canonical(path).lexically_relative(folder_);
  return relative.empty() || *relative.begin() == ".." ? "" : relative.string();
}

}  // namespace testing

extern "C" {

int __real_open(const char*, int, ...);
int __wrap_open(const char* file, int flags, mode_t mode) {
  if ((flags & O_CREAT) && note("open", "", fs::path(file))) return -1;
  return __real_open(file, flags, mode);
}

ssize_t __real_write(int, const void*, std::size_t);
ssize_t __wrap_write(int descriptor, const void* data, std::size_t bytes) {
  return note("write", "", path_of(descriptor)) ? -1 : __real_write(descriptor, data, bytes);
}

int __real_fsync(int);
int __wrap_fsync(int descriptor) {
  const fs::path path = path_of(descriptor);
  if (note("flush", "", path)) {
    if (active->throws) throw std::bad_alloc();
    return -1;
  }
  if (active == nullptr || active->folder_error == 0 || !fs::is_directory(path))
    return __real_fsync(descriptor);
  errno = active->folder_error;
  return -1;
}

int __real_flock(int, int);
int __wrap_flock(int descriptor, int how) {
  if (active == nullptr || active->locks) return __real_flock(descriptor, how);
  errno = active->lock_error;
  return -1;
}

int __real_rename(const char*, const char*);
int __wrap_rename(const char* from, const char* to) {
  if (note("rename", " -> ", fs::path(from), fs::path(to))) return -1;
  return __real_rename(from, to);
}

int __real_renameat2(int, const char*, int, const char*, unsigned);
int __wrap_renameat2(int one_at, const char* one, int other_at, const char* other, unsigned flags) {
  if (active != nullptr && !active->exchanges) {
    errno = EINVAL;
    return -1;
  }
  if (note("exchange", " <-> ", fs::path(one), fs::path(other))) return -1;
  return __real_renameat2(one_at, one, other_at, other, flags);
}

// std::filesystem::remove_all(const path&, std::error_code&)
std::uintmax_t __real__ZNSt10filesystem10remove_allERKNS_7__cxx114pathERSt10error_code(const fs::path&,
                                                                                       std::error_code&);
std::uintmax_t __wrap__ZNSt10filesystem10remove_allERKNS_7__cxx114pathERSt10error_code(
    const fs::path& path, std::error_code& error) {
  if (fs::exists(path)) note("remove", "", path);
  return __real__ZNSt10filesystem10remove_allERKNS_7__cxx114pathERSt10error_code(path, error);
}

}  // extern "C"
