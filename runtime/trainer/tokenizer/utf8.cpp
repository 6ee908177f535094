// SPDX-License-Identifier: Apache-2.0
#include "utf8.hpp"

#include <algorithm>
#include <iterator>

namespace rankc::runtime {
namespace {

unsigned char byte_at(std::string_view text, std::size_t i) { return static_cast<unsigned char>(text[i]); }

/// The second bytes that a first byte allows, and the number of bytes after the first.
struct continuation {
  unsigned char least = 0x80, most = 0xbf;
  std::size_t count = 0;
};

continuation behind(unsigned char first) {
  if (first >= 0xc2 && first <= 0xdf) return {.count = 1};
  if (first == 0xe0) return {.least = 0xa0, .count = 2};
  if (first == 0xed) return {.most = 0x9f, .count = 2};
  if (first >= 0xe1 && first <= 0xef) return {.count = 2};
  if (first == 0xf0) return {.least = 0x90, .count = 3};
  if (first >= 0xf1 && first <= 0xf3) return {.count = 3};
  if (first == 0xf4) return {.most = 0x8f, .count = 3};
  return {};
}

}  // namespace

utf8_sequence first_sequence(std::string_view text) {
  const unsigned char first = byte_at(text, 0);
  if (first < 0x80) return {1, true};
  const continuation rest = behind(first);
  std::size_t length = 1;
  while (length <= rest.count && length < text.size()) {
    const unsigned char next = byte_at(text, length), least = length == 1 ? rest.least : 0x80,
                        most = length == 1 ? rest.most : 0xbf;
    if (next < least || next > most) break;
    ++length;
  }
  return {length, rest.count > 0 && length == rest.count + 1};
}

std::string repaired_utf8(std::string text, std::size_t& replaced) {
  std::string out;
  std::size_t kept = 0;  // bytes of `text` that `out` already has
  for (std::size_t i = 0; i < text.size();) {
    const utf8_sequence here = first_sequence(std::string_view(text).substr(i));
    if (!here.is_valid) {
      out.append(text, kept, i - kept).append("\xef\xbf\xbd");
      kept = i + here.bytes;
      ++replaced;
    }
    i += here.bytes;
  }
  if (kept == 0) return text;
  return out.append(text, kept);
}

void append_utf8(std::string& to, char32_t code) {
  const auto put = [&](char32_t bits) { to += static_cast<char>(bits); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
  }
  put(0x80 | (code & 0x3f));
}

char32_t first_code_point(std::string_view text) {
  const std::size_t length = first_sequence(text).bytes;
  const unsigned char first = byte_at(text, 0);
  char32_t code = first & (length == 1 ? 0x7f : 0xff >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) code = code << 6 | (byte_at(text, i) & 0x3f);
  return code;
}

std::string_view last_sequence(std::string_view text) {
  std::size_t begin = text.size() - 1;
  while ((byte_at(text, begin) & 0xc0) == 0x80) --begin;
  return text.substr(begin);
}

bool is_white_space(char32_t code) {
  constexpr char32_t others[]{' ', 0x85, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000};
  return (code >= '\t' && code <= '\r') || (code >= 0x2000 && code <= 0x200a) ||
         std::find(std::begin(others), std::end(others), code) != std::end(others);
}

}  // namespace rankc::runtime
