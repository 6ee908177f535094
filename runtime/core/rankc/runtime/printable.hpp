// SPDX-License-Identifier: Apache-2.0
// Lines for a terminal. Names of files, tensors and hosts may contain any bytes and have any length. A
// terminal would obey the control sequences in them.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace rankc::runtime {

namespace detail {

/// The length in bytes of the first character of a text; 0 for a control character and for bytes that are not
/// UTF-8.
inline std::size_t length_of_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return byte(0) >= 0x20 && byte(0) != 0x7f ? 1 : 0;
  if (byte(0) < 0xc2 || byte(0) > 0xf4) return 0;
  std::size_t length = 2;
  if (byte(0) >= 0xe0) length = byte(0) < 0xf0 ? 3 : 4;
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool is_control = byte(0) == 0xc2 && byte(1) < 0xa0;
  return is_control ? 0 : length;
}

}  // namespace detail

/// A text as one line for a terminal: control characters, line breaks and bytes that are not UTF-8 become
/// \xNN.
inline std::string printable(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    const std::size_t length = detail::length_of_character(text);
    if (length == 0) {
      const auto byte = static_cast<unsigned char>(text.front());
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

/// The line of an error: printable, without the middle of a text of more than 6000 bytes.
inline std::string error_line(std::string_view text) {
  constexpr std::size_t most = 6000, kept = 2000;
  if (text.size() <= most) return printable(text);
  return printable(text.substr(0, kept)) + " ... (" + std::to_string(text.size() - 2 * kept) +
         " bytes are left out) ... " + printable(text.substr(text.size() - kept));
}

}  // namespace rankc::runtime
