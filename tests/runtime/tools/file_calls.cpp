// SPDX-License-Identifier: Apache-2.0
#include "file_calls.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace fs = std::filesystem;

namespace {

testing::file_calls* active = nullptr;

template <class... Paths>
void note(const char* what, const char* between, const Paths&... paths) {
  if (active == nullptr) return;
  std::string text = what;
  const char* before = " ";
  for (const std::string& name : {active->name(paths)...}) {
    if (name.empty()) return;
    text += before + name;
    before = between;
  }
  active->note(text);
}

}  // namespace

namespace testing {

file_calls::file_calls(const fs::path& folder) : folder_(fs::canonical(folder)) { active = this; }
file_calls::~file_calls() { active = nullptr; }

void file_calls::note(const std::string& call) {
  if (end_before == static_cast<int>(seen.size())) _exit(0);
  seen.push_back(call);
}

std::string file_calls::name(const fs::path& path) const {
  const fs::path relative = fs::weakly_canonical(path).lexically_relative(folder_);
  return relative.empty() || *relative.begin() == ".." ? "" : relative.string();
}

}  // namespace testing

extern "C" {

std::FILE* __real_fopen(const char*, const char*);
std::FILE* __wrap_fopen(const char* file, const char* mode) {
  if (mode[0] == 'w') note("write", "", fs::path(file));
  return __real_fopen(file, mode);
}

int __real_fsync(int);
int __wrap_fsync(int descriptor) {
  note("flush", "", fs::read_symlink("/proc/self/fd/" + std::to_string(descriptor)));
  return __real_fsync(descriptor);
}

int __real_rename(const char*, const char*);
int __wrap_rename(const char* from, const char* to) {
  note("rename", " -> ", fs::path(from), fs::path(to));
  return __real_rename(from, to);
}

int __real_renameat2(int, const char*, int, const char*, unsigned);
int __wrap_renameat2(int one_at, const char* one, int other_at, const char* other, unsigned flags) {
  if (active != nullptr && !active->exchanges) return errno = EINVAL, -1;
  note("exchange", " <-> ", fs::path(one), fs::path(other));
  return __real_renameat2(one_at, one, other_at, other, flags);
}

// std::filesystem::remove_all(const path&, std::error_code&)
std::uintmax_t __real__ZNSt10filesystem10remove_allERKNS_7__cxx114pathERSt10error_code(const fs::path&, std::error_code&);
std::uintmax_t __wrap__ZNSt10filesystem10remove_allERKNS_7__cxx114pathERSt10error_code(const fs::path& path, std::error_code& error) {
  if (fs::exists(path)) note("remove", "", path);
  return __real__ZNSt10filesystem10remove_allERKNS_7__cxx114pathERSt10error_code(path, error);
}

}  // extern "C"
