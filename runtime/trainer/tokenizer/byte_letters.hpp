// SPDX-License-Identifier: Apache-2.0
// The letters that a byte-level BPE vocabulary uses for bytes.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace rankc::runtime {

/// The letter of a byte, in UTF-8. Printable bytes of Latin-1 stand for themselves; the other 68 are U+0100
/// to U+0143.
/// Source: bytes_to_unicode of GPT-2's encoder.py.
const std::string& letter_of_byte(unsigned char byte);

/// The bytes of a token that is valid UTF-8. Empty if one of its letters stands for no byte.
std::optional<std::string> bytes_of_letters(std::string_view token);

}  // namespace rankc::runtime
