// SPDX-License-Identifier: Apache-2.0
// UTF-8: sequence lengths, and replacement of invalid sequences.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace rankc::runtime {

/// A code point, or invalid bytes that one U+FFFD replaces.
struct utf8_sequence {
  std::size_t bytes;
  bool is_valid;
};

/// The sequence at the beginning of a text that is not empty. An invalid one has as many bytes as begin a
/// valid sequence, and at least one ("maximal subpart", like Python's errors="replace").
/// Source: The Unicode Standard, section 3.9, table 3-7.
utf8_sequence first_sequence(std::string_view text);

/// A text with U+FFFD in place of each invalid sequence. `replaced` counts them.
std::string repaired_utf8(std::string text, std::size_t& replaced);

/// Appends a code point that is not a surrogate.
void append_utf8(std::string& to, char32_t code);

/// The first code point of valid UTF-8 that is not empty.
char32_t first_code_point(std::string_view text);

/// The bytes of the last code point of valid UTF-8 that is not empty.
std::string_view last_sequence(std::string_view text);

/// True if a code point has Unicode's property White_Space.
bool is_white_space(char32_t code);

}  // namespace rankc::runtime
