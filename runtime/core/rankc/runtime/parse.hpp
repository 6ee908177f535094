// SPDX-License-Identifier: Apache-2.0
// Numbers in the short texts of the command line. The whole text must be the number.
#pragma once
#include <charconv>
#include <optional>
#include <string_view>

namespace rankc::runtime {

/// Parses a number. `base` is the base of an integer, by default 10.
template <class T>
std::optional<T> parse_number(std::string_view text, auto... base) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base...);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace rankc::runtime
