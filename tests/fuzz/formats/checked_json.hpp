// SPDX-License-Identifier: Apache-2.0
// JSON files with a checksum of their own contents, which a fuzzer cannot guess.
#pragma once
#include "json/json_checksum.hpp"

#include <string>
#include <string_view>

namespace rankc::fuzz {

/// A text with its checksum corrected if it is a JSON object; otherwise the text itself.
inline std::string with_checksum(std::string_view text) {
  auto root = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!root.is_object()) return std::string(text);
  try {
    root["checksum"] = runtime::checksum_of(root);
    return root.dump();
  } catch (const nlohmann::json::type_error&) {  // bytes that are not UTF-8
    return std::string(text);
  }
}

}  // namespace rankc::fuzz
