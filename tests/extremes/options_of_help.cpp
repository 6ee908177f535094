// SPDX-License-Identifier: Apache-2.0
#include "options_of_help.hpp"

#include <sstream>

namespace rankc::test {
namespace {

/// An option's line begins with two spaces; longer indents continue the line above.
bool is_entry(std::string_view line) { return line.starts_with("  ") && line.size() > 2 && line[2] != ' '; }

bool is_heading(std::string_view line) { return line.ends_with(':') && !line.starts_with(' '); }

/// The name of an option is followed by one space and its value's type; the name of a flag by several spaces
/// and its text, or by nothing.
bool has_value(std::string_view behind_name) {
  return behind_name.size() > 1 && behind_name[0] == ' ' && behind_name[1] != ' ';
}

}  // namespace

listed read_help(std::string_view help) {
  listed all;
  std::string heading;
  std::istringstream in{std::string(help)};
  for (std::string line; std::getline(in, line);) {
    if (is_heading(line)) heading = line;
    if (!is_entry(line)) continue;
    const std::string_view entry = std::string_view(line).substr(2);
    const std::string name(entry.substr(0, entry.find(' ')));
    if (heading == "Subcommands:") all.subcommands.push_back(name);
    else if (heading == "Positionals:") all.positionals.push_back(name);
    else if (name.starts_with("--") && name != "--version")
      (has_value(entry.substr(name.size())) ? all.options : all.flags).push_back(name);
  }
  return all;
}

}  // namespace rankc::test
