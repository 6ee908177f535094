// SPDX-License-Identifier: Apache-2.0
// Writes to standard error. Nothing here throws: the program continues if standard error cannot be written.
#pragma once
#include <rankc/runtime/printable.hpp>

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace rankc::runtime {

/// Write a text to standard error, and ignore errors. Safe in a signal handler.
void write_error(std::string_view text) noexcept;

/// Fill in the values of a text and write it as an `error_line`. The text ends with a line break.
template <class... Values>
void say_error(fmt::format_string<Values...> text, Values&&... values) noexcept try {
  std::string line = fmt::format(text, std::forward<Values>(values)...);
  if (line.ends_with('\n')) line.pop_back();
  write_error(error_line(line) + "\n");
} catch (...) {
  write_error("out of memory while an error was being printed\n");
}

/// Open /dev/null as each standard descriptor that is closed. Otherwise the next opened file would get its
/// number, and would receive printed lines.
void reserve_standard_files() noexcept;

}  // namespace rankc::runtime
