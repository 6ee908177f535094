// SPDX-License-Identifier: Apache-2.0
#include "beside.hpp"

#include <rankc/runtime/failure.hpp>

#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <ostream>

namespace rankc::tool {

int become(const std::string& name, const std::vector<std::string>& arguments, std::ostream& errors) {
  const std::string path = (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
  std::vector<char*> pointers{const_cast<char*>(path.c_str())};
  for (const std::string& a : arguments) pointers.push_back(const_cast<char*>(a.c_str()));
  pointers.push_back(nullptr);
  execv(path.c_str(), pointers.data());
  errors << "error: " << runtime::say("RC8127: {} cannot be run: {}", path, std::strerror(errno)) << "\n";
  return 1;
}

}  // namespace rankc::tool
