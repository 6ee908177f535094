// SPDX-License-Identifier: Apache-2.0
#include "beside.hpp"

#include <rankc/runtime/failure.hpp>

#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <ostream>
#include <system_error>

namespace rankc::tool {

int become(const std::string& name, const std::vector<std::string>& arguments, std::ostream& errors) {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {  // without /proc
    errors << "error: " << runtime::say("RC8128: the folder of {} is unknown: {}", name, error.message())
           << "\n";
    return 1;
  }
  const std::string path = (here.parent_path() / name).string();
  std::vector<char*> pointers{const_cast<char*>(path.c_str())};
  for (const std::string& a : arguments) pointers.push_back(const_cast<char*>(a.c_str()));
  pointers.push_back(nullptr);
  execv(path.c_str(), pointers.data());
  errors << "error: " << runtime::say("RC8127: {} cannot be run: {}", path, std::strerror(errno)) << "\n";
  return 1;
}

}  // namespace rankc::tool
