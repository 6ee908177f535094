// SPDX-License-Identifier: Apache-2.0
#include <rankc/codegen/names.hpp>
#include <rankc/codegen/text_template.hpp>
#include <rankc/runtime/output_folder.hpp>
#include <rankc/starter.hpp>

#include <algorithm>
#include <cctype>
#include <ostream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "commands.hpp"

namespace rankc::tool {

namespace fs = std::filesystem;

namespace {

/// The name becomes a CMake target, a file and a C++ namespace of the generated program.
std::string checked_name(const fs::path& folder, const std::string& given) {
  // "." and "a/" have no last part of their own.
  const fs::path whole = fs::absolute(folder).lexically_normal();
  const std::string last = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  const std::string name = given.empty() ? codegen::identifier(last) : given;
  const bool letters = std::all_of(name.begin(), name.end(),
                                   [](unsigned char c) { return c < 128 && (std::isalnum(c) || c == '_'); });
  if (name.empty() || !letters || !std::isalpha(static_cast<unsigned char>(name[0])))
    throw std::runtime_error(
        "the name \"" + name +
        "\" must be a letter followed by letters, digits and underscores; give one with --name");
  // CMake's own targets, and namespaces that a program uses.
  for (const char* taken :
       {"all", "clean", "help", "install", "package", "test", "rankc", "plans", "std", "main"})
    if (name == taken)
      throw std::runtime_error("the name \"" + name + "\" is taken; give another with --name");
  return name;
}

}  // namespace

int init(const fs::path& folder, std::string name, std::ostream& out, std::ostream& errors) {
  try {
    name = checked_name(folder, name);
    const codegen::holes holes{{"name", name}};
    const std::vector<std::pair<std::string, std::string>> files{
        {"CMakeLists.txt", codegen::fill(templates::starter_CMakeLists_txt, holes)},
        {"plan.hpp", std::string(templates::starter_plan_hpp)},
        {"README.md", codegen::fill(templates::starter_README_md, holes)},
        {".gitignore", std::string(templates::starter_gitignore)}};
    for (const auto& [file, text] : files)
      if (fs::exists(fs::symlink_status(folder / file)))
        throw std::runtime_error((folder / file).string() + " exists already; nothing was written");
    fs::create_directories(folder);
    runtime::output_folder to(folder, 1);
    std::vector<std::string> names;
    for (const auto& [file, text] : files) {
      to.write(file, text);
      names.push_back(file);
    }
    to.put_in_place(names);
  } catch (const std::exception& e) {
    errors << "error: " << e.what() << "\n";
    return 1;
  }
  out << "wrote the starter project " << name << " to " << folder.string()
      << "; its README.md says how to build it\n";
  return 0;
}

}  // namespace rankc::tool
