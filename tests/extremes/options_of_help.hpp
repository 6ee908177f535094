// SPDX-License-Identifier: Apache-2.0
// The commands, options and positional arguments that the text of `--help` lists.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace rankc::test {

struct listed {
  std::vector<std::string> subcommands;
  std::vector<std::string> options;  // with a value
  std::vector<std::string> flags;    // without a value
  std::vector<std::string> positionals;
};

/// The options and flags of CLI11's help text, in all groups, except --help and --version.
listed read_help(std::string_view help);

}  // namespace rankc::test
