// SPDX-License-Identifier: Apache-2.0
// Refuses options and arguments with an empty value: in scripts, a variable that is not set.
#pragma once
#include <CLI/CLI.hpp>

#include <algorithm>

namespace rankc::codegen {

/// Errors: CLI::ValidationError that names the first option of a parsed command line whose value is empty.
inline void refuse_empty_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options())
    if (std::ranges::count(option->results(), "") > 0)
      throw CLI::ValidationError(option->get_name(),
                                 "the value is empty; fill it in, or leave the option out");
  for (const CLI::App* command : app.get_subcommands()) refuse_empty_values(*command);
}

}  // namespace rankc::codegen
