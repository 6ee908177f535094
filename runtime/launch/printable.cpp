// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/printable.hpp>

#include <fmt/format.h>
#include <cstddef>

namespace rankc::runtime {
namespace {

/// The bytes of the character that begins a text; 0 where it is a control character or not UTF-8.
std::size_t length_of_character(std::string_view text) {
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

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = length_of_character(text);
    if (length == 0) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    else out += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace rankc::runtime
