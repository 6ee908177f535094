// SPDX-License-Identifier: Apache-2.0
// Words of a million bytes, bytes without a token, and the order of merges.
#include "../../../exit_with.hpp"
#include "../../../slowness.hpp"
#include "../../../some_of.hpp"

#include <doctest/doctest.h>

#include <chrono>

#include "oracle.hpp"

using namespace rankc::test;

namespace {

std::chrono::duration<double> time_of(rankc::runtime::tokenizer& by, const std::string& text) {
  const auto begin = std::chrono::steady_clock::now();
  CHECK(decoded(by, ids_of(by, text)) == text);
  return std::chrono::steady_clock::now() - begin;
}

}  // namespace

TEST_CASE("a word of a million letters takes seconds") {
  std::string mixed;
  for (int i = 0; i < 1'000'000; ++i) mixed += "etaoin"[i % 6 * 7919 % 6];
  std::size_t n = 0;
  for (const char* family : {"gpt2", "llama3", "qwen2", "gpt_oss", "deepseek"}) {
    if (!rankc::test::takes(n++)) continue;
    CAPTURE(family);
    auto by = read(oracle(family));
    for (const std::string& text :
         {std::string(1'000'000, 'a'), std::string(1'000'000, ' '), std::string(1'000'000, ' ') + "a",
          std::string(1'000'000, '\n'), std::string(1'000'000, '7'), mixed})
      CHECK(time_of(by, text) < scaled(60));
  }
}

TEST_CASE("of pairs that can be merged, the one of the lowest rank is first, and of equal ones the first") {
  const nlohmann::json model{{"vocab", {{"a", 0}, {"b", 1}, {"c", 2}, {"ab", 3}, {"bc", 4}, {"aa", 5}}}};
  const auto ids = [&](const nlohmann::json& merges, const char* text) {
    nlohmann::json changed = model;
    changed["merges"] = merges;
    auto by = read(patched(oracle("gpt2"), {{"model", changed}, {"added_tokens", nlohmann::json::array()}}));
    return ids_of(by, text);
  };
  using ints = std::vector<std::int32_t>;
  CHECK(ids({"a b", "b c"}, "abc") == ints{3, 2});
  CHECK(ids({"b c", "a b"}, "abc") == ints{0, 4});
  CHECK(ids({"a a"}, "aaaaa") == ints{5, 5, 0});
  CHECK(ids({"#version: 0.2", "b c", {"a", "b"}}, "abcab") == ints{0, 4, 3});
  CHECK(ids({"a b", "b c", "a b"}, "abc") == ints{0, 4});  // the later rank of a duplicate pair counts
  CHECK(exit_of([&] { ids({"a b"}, "a\x0b"); }) == exit_with{1, {6702, {"0B"}}});
}
