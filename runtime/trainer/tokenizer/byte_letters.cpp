// SPDX-License-Identifier: Apache-2.0
#include "byte_letters.hpp"

#include <array>

#include "utf8.hpp"

namespace rankc::runtime {
namespace {

constexpr char32_t first_substitute = 0x100;
constexpr int substitutes = 68;

bool stands_for_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

struct alphabet {
  std::array<std::string, 256> letters;
  std::array<int, first_substitute + substitutes> bytes;  // by code point; -1: not a letter

  alphabet() {
    bytes.fill(-1);
    char32_t next = first_substitute;
    for (int byte = 0; byte < 256; ++byte) {
      const char32_t code = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
      append_utf8(letters[static_cast<std::size_t>(byte)], code);
      bytes[code] = byte;
    }
  }
};

const alphabet& all_letters() {
  static const alphabet letters;
  return letters;
}

}  // namespace

const std::string& letter_of_byte(unsigned char byte) { return all_letters().letters[byte]; }

std::optional<std::string> bytes_of_letters(std::string_view token) {
  const auto& bytes = all_letters().bytes;
  std::string out;
  while (!token.empty()) {
    const char32_t code = first_code_point(token);
    if (code >= bytes.size() || bytes[code] < 0) return std::nullopt;
    out += static_cast<char>(bytes[code]);
    token.remove_prefix(first_sequence(token).bytes);
  }
  return out;
}

}  // namespace rankc::runtime
