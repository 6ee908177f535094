// SPDX-License-Identifier: Apache-2.0
// Packs examples into sequences by best fit: each example is there once, whole, with its labels.
#include <doctest/doctest.h>
#include <packer.hpp>

#include <numeric>
#include <random>

#include "tokens_folder.hpp"

namespace rankc::tool {

namespace tokens_test {

namespace packing {

using sizes = std::vector<std::size_t>;
using groups = std::vector<sizes>;

/// Chatml conversations whose tokens are n bytes.
std::string lines_of(const sizes& lengths) {
  constexpr std::size_t around = 62;  // bytes that the template adds
  std::string lines;
  for (const std::size_t length : lengths)
    lines += R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": ")" +
             std::string(length - around, 'a') + "\"}]}\n";
  return lines;
}

TEST_CASE("the longest come first, and each goes where the least room is left") {
  CHECK(best_fit({3, 5, 2, 4, 6}, 10) == groups{{0, 1, 2}, {3, 4}});
  CHECK(best_fit({10, 10}, 10) == groups{{0}, {1}});
  CHECK(best_fit({1, 9, 8, 1, 1}, 10) == groups{{0, 1}, {2, 3, 4}});
  CHECK(best_fit({}, 10).empty());
}

TEST_CASE("no sequence is too long, no example is lost, and none would fit elsewhere") {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    sizes lengths(200);
    for (std::size_t& length : lengths) length = 1 + random() % (round % 2 == 0 ? 64 : 20);
    const groups packed = best_fit(lengths, 64);
    std::vector<bool> seen(lengths.size());
    sizes held;
    for (const sizes& sequence : packed) {
      CHECK(std::is_sorted(sequence.begin(), sequence.end()));
      held.push_back(0);
      for (const std::size_t i : sequence) {
        CHECK_FALSE(seen[i]);
        seen[i] = true;
        held.back() += lengths[i];
      }
      CHECK(held.back() <= 64);
    }
    CHECK(std::count(seen.begin(), seen.end(), true) == 200);
    // No two sequences fit into one.
    std::sort(held.begin(), held.end());
    if (held.size() > 1) CHECK(held[0] + held[1] > 64);
  }
}

TEST_CASE("a sequence has whole conversations, their labels, and the end of documents up to its end") {
  const folder f;
  const fs::path lines = f.write("a.jsonl", lines_of({70, 62, 90, 64}));
  const result r = f.run({.files = {lines}, .chat = "chatml", .end_of_document = "0", .pack = 128});
  REQUIRE_MESSAGE(r.code == 0, r.errors);
  const ids all = f.written();
  const std::string labels = f.labels();
  REQUIRE(all.size() == 3 * 128 + 1);
  REQUIRE(labels.size() == all.size());
  // The packed sequences, by their first example: 71, 63 + 65 and 91 tokens, with the ends of documents.
  const auto ends_of = [&](std::size_t sequence) {
    sizes ends;
    for (std::size_t i = 0; i < 128; ++i)
      if (all[sequence * 128 + i] == 0) ends.push_back(i);
    return ends;
  };
  const auto from = [](std::size_t first) {
    sizes rest(128 - first);
    std::iota(rest.begin(), rest.end(), first);
    return rest;
  };
  CHECK(ends_of(0) == from(70));
  sizes two = from(127);
  two.insert(two.begin(), 62);
  CHECK(ends_of(1) == two);
  CHECK(ends_of(2) == from(90));
  CHECK(all.back() == 0);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] == 0) CHECK(labels[i] == '0');
  CHECK(std::count(labels.begin(), labels.end(), '1') == 70 + 62 + 90 + 64 - 4 * 62 + 4 * 10);
  CHECK(r.out.ends_with("; 78 are labels\npacked: 4 examples in 3 sequences of 128 tokens, 75.52 % full\n"));
  runtime::token_mask_header header{};
  std::ifstream(f.scratch.path / "t.mask", std::ios::binary)
      .read(reinterpret_cast<char*>(&header), sizeof header);
  CHECK(header.packed == 128);
  CHECK(header.tokens == all.size());
}

TEST_CASE("a conversation that is longer than a sequence loses its end, with a note") {
  const folder f;
  const fs::path lines = f.write("a.jsonl", lines_of({70, 200}));
  const result r = f.run({.files = {lines}, .chat = "chatml", .end_of_document = "0", .pack = 128});
  REQUIRE(r.code == 0);
  CHECK(test::said_in(r.errors, 8150) == test::said{8150, {"1", "2", "128", "73"}});
  const ids all = f.written();
  CHECK(std::count(all.begin() + 128, all.begin() + 256, 0) == 0);
}

TEST_CASE("texts are packed whole where they fit, and go on in another sequence where they do not") {
  const folder f;
  const fs::path lines =
      f.write("a.jsonl", "{\"t\": \"abcd\"}\n{\"t\": \"efghijklmnop\"}\n{\"t\": \"qrs\"}\n");
  const result r = f.run({.files = {lines}, .field = "t", .end_of_document = ".", .pack = 9});
  REQUIRE_MESSAGE(r.code == 0, r.errors);
  CHECK(f.text() == "abcd.nop.efghijklmqrs.......");
  CHECK(f.labels() ==
        "011110111"
        "011111111"
        "011100000"
        "0");
  CHECK(f.refused({.files = {lines}, .field = "t", .pack = 9}, 2) == test::said{8147, {"9"}});
}

}  // namespace packing

}  // namespace tokens_test

}  // namespace rankc::tool
