// SPDX-License-Identifier: Apache-2.0
// Texts of any bytes as JSON. JSON must be UTF-8, but a path need not be.
#pragma once
#include <rankc/runtime/parse.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <stdexcept>
#include <string>

#include "json_file.hpp"

namespace rankc::runtime {

inline bool is_utf8(const std::string& text) {
  using on_error = nlohmann::json::error_handler_t;
  const nlohmann::json value = text;
  return value.dump(-1, ' ', false, on_error::ignore) == value.dump(-1, ' ', false, on_error::replace);
}

/// The text itself, or {"escaped": "corp%E9s.txt"} if it is not UTF-8.
inline nlohmann::ordered_json json_of_text(const std::string& text) {
  if (is_utf8(text)) return text;
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    escaped += byte < 0x80 && c != '%' ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return nlohmann::ordered_json::object({{"escaped", escaped}});
}

/// The byte that two hexadecimal digits such as "E9" stand for.
/// Errors: std::invalid_argument.
inline char byte_of_digits(std::string_view digits) {
  const auto byte = parse_number<unsigned char>(digits, 16);
  if (digits.size() != 2 || !byte)
    throw std::invalid_argument(fmt::format("%{} is no byte, expected % and two hexadecimal digits", digits));
  return static_cast<char>(*byte);
}

/// Reads a text that json_of_text has written under a key.
/// Errors: std::invalid_argument that names the key and the value.
inline std::string text_field(const nlohmann::ordered_json& object, const char* key) {
  const nlohmann::ordered_json& value = value_of(object, key);
  if (!value.is_object()) return field<std::string>(object, key);
  const auto escaped = field<std::string>(value, "escaped");
  std::string text;
  for (std::size_t i = 0; i < escaped.size(); ++i) {
    if (escaped[i] != '%') {
      text += escaped[i];
      continue;
    }
    text += byte_of_digits(std::string_view(escaped).substr(i + 1, 2));
    i += 2;
  }
  return text;
}

}  // namespace rankc::runtime
