// SPDX-License-Identifier: Apache-2.0
// The tokenizers and texts of oracles/tokenizers.
#pragma once
#include "../scratch.hpp"

#include <nlohmann/json.hpp>
#include <tokenizer/tokenizer.hpp>
#include <tokenizer/utf8.hpp>

#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace rankc::test {

inline nlohmann::json oracle(const std::string& name) {
  std::ifstream in(std::string(RANKC_TOKENIZERS) + "/" + name + ".json");
  return nlohmann::json::parse(in);
}

/// The texts by name, before invalid UTF-8 is replaced.
inline std::map<std::string, std::string> oracle_texts(const nlohmann::json& cases) {
  auto texts = cases.at("texts").get<std::map<std::string, std::string>>();
  for (const auto& [name, digits] : cases.at("hexadecimal").items()) {
    const auto pairs = digits.get<std::string>();
    for (std::size_t i = 0; i < pairs.size(); i += 3)
      texts[name] += static_cast<char>(std::stoi(pairs.substr(i, 2), nullptr, 16));
  }
  return texts;
}

/// A tokenizer.json with other fields; those of `model` are merged into the model.
inline nlohmann::json patched(nlohmann::json root, const nlohmann::json& patch) {
  for (const auto& [key, value] : patch.items())
    if (key == "model") root[key].update(value);
    else root[key] = value;
  return root;
}

inline runtime::tokenizer read(const nlohmann::json& root) {
  const runtime::scratch files;
  return runtime::read_tokenizer(files.write("tokenizer.json", root.dump()));
}

inline std::vector<std::int32_t> ids_of(runtime::tokenizer& by, const std::string& text) {
  std::size_t replaced = 0;
  std::vector<std::int32_t> ids;
  by.encode(runtime::repaired_utf8(text, replaced), ids);
  return ids;
}

inline std::string decoded(const runtime::tokenizer& by, const std::vector<std::int32_t>& ids) {
  std::string text;
  for (const std::int32_t id : ids) text += by.bytes_of(id);
  return text;
}

}  // namespace rankc::test
