// SPDX-License-Identifier: Apache-2.0
// The errors that every command line of codegen/ prints as "error: RC7900: ...".
#pragma once
#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/printable.hpp>

#include <exception>
#include <new>
#include <string>

namespace rankc::codegen {

/// A line for a command line that CLI11 refuses.
inline std::string usage_error(const std::exception& e) {
  const std::string text = runtime::say("RC7900: the arguments are not valid: {}; see --help", e.what());
  return "error: " + runtime::error_line(text) + "\n";
}

inline std::string output_error() { return runtime::say("RC7901: standard output cannot be written"); }

/// The sentence of an exception, as one line. A runtime::failure and RC401 have an id; missing memory gets
/// RC7912, and other exceptions of libraries RC7910.
inline std::string sentence_of(const std::exception& e) {
  const std::string text = dynamic_cast<const std::bad_alloc*>(&e) != nullptr
                               ? runtime::say("RC7912: the process can have no more memory")
                               : e.what();
  return runtime::error_line(text.starts_with("RC") ? text
                                                    : runtime::say("RC7910: the command failed: {}", text));
}

inline int exit_code_of(const std::exception& e) {
  const auto* failure = dynamic_cast<const runtime::failure*>(&e);
  return failure ? failure->code : 1;
}

}  // namespace rankc::codegen
