// SPDX-License-Identifier: Apache-2.0
#include <command_line.hpp>
#include <rankc/codegen/names.hpp>
#include <rankc/codegen/text_template.hpp>
#include <rankc/runtime/output_folder.hpp>
#include <rankc/starter.hpp>
#include <write_files.hpp>

#include <algorithm>
#include <cctype>
#include <ostream>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "commands.hpp"

namespace rankc::tool {

namespace fs = std::filesystem;

namespace {

/// The name of the program: of its CMake target, its file and its C++ namespace.
std::string checked_name(const fs::path& folder, const std::string& given) {
  // "." and "a/" have no last component.
  const fs::path whole = fs::absolute(folder).lexically_normal();
  const std::string last = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  const std::string name = given.empty() ? codegen::identifier(last) : given;
  const bool letters = std::all_of(name.begin(), name.end(),
                                   [](unsigned char c) { return c < 128 && (std::isalnum(c) || c == '_'); });
  if (name.empty() || !letters || !std::isalpha(static_cast<unsigned char>(name[0])))
    throw runtime::failure(1,
                           "RC8020: {} names the program \"{}\", which is not a letter followed by letters, "
                           "digits and underscores; give another name with --name",
                           given.empty() ? folder.string() : "--name", name);
  // Targets of CMake, and namespaces that a program uses.
  for (const char* taken :
       {"all", "clean", "help", "install", "package", "test", "rankc", "plans", "std", "main"})
    if (name == taken)
      throw runtime::failure(
          1, "RC8021: the name \"{}\" is taken by CMake or by a generated program; give another with --name",
          name);
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
    std::error_code unreachable;  // make_folder refuses such a folder
    for (const auto& [file, text] : files)
      if (fs::exists(fs::symlink_status(folder / file, unreachable)))
        throw runtime::failure(1, "RC8022: {} exists already; nothing was written", folder / file);
    codegen::make_folder(folder);
    runtime::output_folder to(folder, 1);
    std::vector<std::string> names;
    for (const auto& [file, text] : files) {
      to.write(file, text);
      names.push_back(file);
    }
    to.put_in_place(names);
  } catch (const std::exception& e) {
    errors << "error: " << codegen::sentence_of(e) << "\n";
    return codegen::exit_code_of(e);
  }
  out << "wrote the starter project " << name << " to " << runtime::printable(folder.string())
      << "; its README.md says how to build it\n";
  return 0;
}

}  // namespace rankc::tool
