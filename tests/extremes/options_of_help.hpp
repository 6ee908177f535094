// SPDX-License-Identifier: Apache-2.0
// The commands, options and positional arguments that the text of `--help` lists.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace rankc::test {

struct listed {
  std::vector<std::string> subcommands;
  std::vector<std::string> options;  // that take a value
  std::vector<std::string> flags;    // that take none
  std::vector<std::string> positionals;
};

/// Shapes: `help` is the text of CLI11. Options of all groups are listed, but --help and --version.
listed read_help(std::string_view help);

}  // namespace rankc::test
