// SPDX-License-Identifier: Apache-2.0
// Numbers out of the small texts of the command line, where the whole text must be the number.
#pragma once
#include <charconv>
#include <optional>
#include <string_view>

namespace rankc::runtime {

/// `base`: of whole numbers; none: 10.
template <class T>
std::optional<T> parse_number(std::string_view text, auto... base) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base...);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace rankc::runtime
