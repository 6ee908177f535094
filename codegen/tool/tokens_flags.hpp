// SPDX-License-Identifier: Apache-2.0
// The options of `rankc tokens`.
#pragma once
#include <CLI/CLI.hpp>

#include "tokens.hpp"

namespace rankc::tool {

/// Adds the options to a command. `to` gets their values, and must live longer than the command.
void add_tokens_options(CLI::App& command, tokens_options& to);

}  // namespace rankc::tool
