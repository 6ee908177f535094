// SPDX-License-Identifier: Apache-2.0
#include "write_files.hpp"

#include <rankc/runtime/output_folder.hpp>

#include <fstream>
#include <iterator>
#include <vector>

namespace rankc::codegen {
namespace {

namespace fs = std::filesystem;

bool contains(const fs::path& file, const std::string& text) {
  if (fs::is_symlink(file)) return false;
  std::ifstream in(file, std::ios::binary);
  return in && std::string(std::istreambuf_iterator<char>(in), {}) == text;
}

}  // namespace

bool write_files(const fs::path& folder, const std::map<std::string, std::string>& files) {
  std::vector<std::string> changed;
  for (const auto& [name, text] : files)
    if (!contains(folder / name, text)) changed.push_back(name);
  if (changed.empty()) return false;
  runtime::output_folder to(folder, 1);
  for (const std::string& name : changed) to.write(name, files.at(name));
  to.put_in_place(changed);
  return true;
}

}  // namespace rankc::codegen
