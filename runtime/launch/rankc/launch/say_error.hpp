// SPDX-License-Identifier: Apache-2.0
// Standard error. A program goes on where it cannot be written: nothing here throws.
#pragma once
#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace rankc::runtime {

/// Write a text to standard error, as far as that can be written. It may be called in a signal handler.
void write_error(std::string_view text) noexcept;

/// Write a text whose values are filled in.
template <class... Values>
void say_error(fmt::format_string<Values...> text, Values&&... values) noexcept try {
  write_error(fmt::format(text, std::forward<Values>(values)...));
} catch (...) {
  write_error("out of memory while an error was being told\n");
}

/// Give the standard descriptors that are closed to /dev/null, unwritable: a file that is opened later would
/// get their numbers, and what is printed would go into it.
void reserve_standard_files() noexcept;

}  // namespace rankc::runtime
