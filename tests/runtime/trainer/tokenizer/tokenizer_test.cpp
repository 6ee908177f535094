// SPDX-License-Identifier: Apache-2.0
// Small tokenizers of each family, and changed ones, give the same ids as the `tokenizers` package
// (oracles/tokenizers).
#include <doctest/doctest.h>

#include "oracle.hpp"

using namespace rankc::test;

TEST_CASE("ids are those of the tokenizers package") {
  const nlohmann::json all = oracle("cases");
  const auto texts = oracle_texts(all);
  std::size_t compared = 0;
  for (const nlohmann::json& c : all.at("cases")) {
    CAPTURE(c.at("name").get<std::string>());
    auto by = read(patched(oracle(c.at("file")), c.at("patch")));
    CHECK(by.begin() == c.at("begin").get<std::vector<std::int32_t>>());
    for (const auto& [name, ids] : c.at("ids").items()) {
      CAPTURE(name);
      CHECK(ids_of(by, texts.at(name)) == ids.get<std::vector<std::int32_t>>());
      ++compared;
    }
  }
  CHECK(compared > 400);
}

TEST_CASE("tokens stand for the bytes of their text") {
  const auto texts = oracle_texts(oracle("cases"));
  for (const char* family : {"gpt2", "llama3", "gpt_oss", "deepseek"}) {
    auto by = read(oracle(family));
    for (const auto& [name, text] : texts) {
      CAPTURE(name);
      std::size_t replaced = 0;
      CHECK(decoded(by, ids_of(by, text)) == rankc::runtime::repaired_utf8(text, replaced));
    }
  }
  const auto by = read(oracle("gpt2"));
  CHECK(by.size() == 559);
  CHECK(by.bytes_of(558) == "<|end_of|>");
  CHECK(by.id_of("<|end_of|>") == 558);
  CHECK(by.bytes_of(559) == "");
  CHECK(by.bytes_of(-1) == "");
}

TEST_CASE("words that are kept do not change later ones") {
  auto by = read(oracle("llama3"));
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += " word" + std::to_string(i);
  const auto whole = ids_of(by, text);
  auto other = read(oracle("llama3"));
  std::vector<std::int32_t> again = ids_of(other, text.substr(0, text.find(" word150000")));
  other.encode(text.substr(text.find(" word150000")), again);
  CHECK(whole == again);
  CHECK(decoded(by, whole) == text);
}
