// SPDX-License-Identifier: Apache-2.0
// A test's temporary folder, which is removed with the test, and the text of a refusal.
#pragma once
#include "../../scratch_folder.hpp"

#include <rankc/runtime/engine.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace rankc::runtime {

class scratch {
 public:
  std::string path(std::string_view name = "") const {
    return name.empty() ? folder_.path.string() : (folder_.path / name).string();
  }
  std::string write(std::string_view name, std::string_view bytes) const {
    std::filesystem::create_directories((folder_.path / name).parent_path());
    std::filesystem::remove(folder_.path /
                            name);  // flushing a file that was truncated and rewritten is slow on ext4
    std::ofstream(folder_.path / name, std::ios::binary) << bytes;
    return path(name);
  }

 private:
  scratch_folder folder_;
};

inline std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// "CODE: text" of the failure that `act` throws, or "nothing was thrown".
template <class Act>
std::string refusal_of(const Act& act) {
  try {
    act();
  } catch (const failure& f) {
    return std::to_string(f.code) + ": " + f.what();
  }
  return "nothing was thrown";
}

}  // namespace rankc::runtime
