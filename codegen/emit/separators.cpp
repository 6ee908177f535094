// SPDX-License-Identifier: Apache-2.0
#include "separators.hpp"

#include <algorithm>
#include <cctype>

namespace rankc::codegen {

namespace {

constexpr std::size_t shortest = 5, group = 3;

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }
/// Whether a character belongs to a name or a number.
bool is_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

std::string separated(std::string_view digits) {
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % group == 0) out += '\'';
    out += digits[i];
  }
  return out;
}

/// The end of the string that begins at a quotation mark.
std::size_t end_of_string(std::string_view code, std::size_t at) {
  for (++at; at < code.size() && code[at] != '"' && code[at] != '\n'; ++at)
    if (code[at] == '\\') ++at;
  return std::min(at + 1, code.size());
}

}  // namespace

std::string with_separators(std::string_view code) {
  std::string out;
  for (std::size_t at = 0; at < code.size();) {
    const std::size_t begin = at;
    if (code[at] == '"') at = end_of_string(code, at);
    else if (is_of_word(code[at]))
      at = std::find_if_not(code.begin() + at, code.end(), is_of_word) - code.begin();
    else ++at;
    std::string_view piece = code.substr(begin, at - begin);
    // The point that ends a sentence of a comment is no part of a number.
    const std::size_t end = piece.ends_with('.') ? piece.size() - 1 : piece.size();
    const std::string_view number = piece.substr(0, end);
    const bool is_long = number.size() >= shortest && std::ranges::all_of(number, is_digit);
    out += is_long ? separated(number) + std::string(piece.substr(end)) : std::string(piece);
  }
  return out;
}

}  // namespace rankc::codegen
