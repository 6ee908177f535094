// SPDX-License-Identifier: Apache-2.0
// Texts of any bytes as JSON, which holds UTF-8 alone: a path need not be UTF-8.
#pragma once
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <string>

namespace rankc::runtime {

inline bool is_utf8(const std::string& text) {
  using on_error = nlohmann::json::error_handler_t;
  const nlohmann::json value = text;
  return value.dump(-1, ' ', false, on_error::ignore) == value.dump(-1, ' ', false, on_error::replace);
}

/// The text itself; where it is not UTF-8, {"escaped": "corp%E9s.txt"}.
inline nlohmann::ordered_json json_of_text(const std::string& text) {
  if (is_utf8(text)) return text;
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    escaped += byte < 0x80 && c != '%' ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return nlohmann::ordered_json::object({{"escaped", escaped}});
}

/// The text that json_of_text has written. Errors: exceptions of JSON and of std::stoi.
inline std::string text_of_json(const nlohmann::ordered_json& value) {
  if (!value.is_object()) return value.get<std::string>();
  const std::string escaped = value.at("escaped");
  std::string text;
  for (std::size_t i = 0; i < escaped.size(); ++i) {
    if (escaped[i] != '%') {
      text += escaped[i];
      continue;
    }
    text += static_cast<char>(std::stoi(escaped.substr(i + 1, 2), nullptr, 16));
    i += 2;
  }
  return text;
}

}  // namespace rankc::runtime
