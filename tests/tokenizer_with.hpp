// SPDX-License-Identifier: Apache-2.0
// A tokenizer.json with additional special tokens.
#pragma once
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

namespace rankc::test {

/// The text of a tokenizer.json with additional special tokens, which get the next free ids.
inline std::string tokenizer_with(const std::string& file, const std::vector<std::string>& special) {
  std::ifstream in(file);
  nlohmann::json root = nlohmann::json::parse(in);
  nlohmann::json& added = root["added_tokens"];
  int next = 0;
  for (const nlohmann::json& token : added) next = std::max(next, token["id"].get<int>() + 1);
  for (const std::string& content : special) {
    const bool is_known = std::any_of(
        added.begin(), added.end(), [&](const nlohmann::json& token) { return token["content"] == content; });
    if (!is_known)
      added.push_back({{"id", next++},
                       {"content", content},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", true}});
  }
  return root.dump();
}

}  // namespace rankc::test
