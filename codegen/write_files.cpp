// SPDX-License-Identifier: Apache-2.0
#include "write_files.hpp"

#include <rankc/runtime/input_file.hpp>
#include <rankc/runtime/output_folder.hpp>

#include <system_error>
#include <vector>

namespace rankc::codegen {
namespace {

namespace fs = std::filesystem;

bool contains(const fs::path& file, const std::string& text) {
  if (fs::is_symlink(file)) return false;
  runtime::input_file in(file);
  return in.size() == text.size() && in.contents() == text && in.problem().empty();
}

}  // namespace

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw runtime::failure(1, "RC7911: the folder {} cannot be made: {}", folder, error.message());
}

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
