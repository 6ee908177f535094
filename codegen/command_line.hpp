// SPDX-License-Identifier: Apache-2.0
// The sentences that every command line of codegen/ may say.
#pragma once
#include <rankc/runtime/failure.hpp>

#include <CLI/CLI.hpp>
#include <string>

namespace rankc::codegen {

/// A line for a command line that CLI11 refuses: the argument of CLI::App::failure_message.
inline std::string usage_error(const CLI::App*, const CLI::Error& e) {
  return "error: " + runtime::say("RC7900: the command line is not valid: {}; see --help", e.what()) + "\n";
}

inline std::string output_error() { return runtime::say("RC7901: standard output cannot be written"); }

}  // namespace rankc::codegen
