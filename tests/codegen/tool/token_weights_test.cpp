// SPDX-License-Identifier: Apache-2.0
// `rankc tokens --weights-field`: each label has the weight of its text or message, packed or not.
#include <doctest/doctest.h>

#include "tokens_folder.hpp"

namespace rankc::tool {

namespace tokens_test {

namespace weighing {

using numbers = std::vector<float>;

numbers weights_in(const folder& f) {
  std::ifstream in(f.scratch.path / "t.weights", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  numbers all(bytes.size() / sizeof(float));
  std::memcpy(all.data(), bytes.data(), all.size() * sizeof(float));
  return all;
}

/// The weights of the labels as digits, and 0 for other tokens, for weights from 1 to 9.
std::string digits_in(const folder& f) {
  std::string digits;
  for (const float weight : weights_in(f)) digits += static_cast<char>('0' + static_cast<int>(weight));
  return digits;
}

TEST_CASE("all tokens of a text have the weight of its line") {
  const folder f;
  const fs::path lines =
      f.write("a.jsonl",
              "{\"text\": \"ab\", \"w\": 0.1}\n{\"w\": 0, \"text\": \"\"}\n{\"text\": \"cde\", \"w\": 2}\n");
  const result r = f.run({.files = {lines}, .field = "text", .weights_field = "w"});
  REQUIRE_MESSAGE(r.code == 0, r.errors);
  CHECK(f.text() == "abcde");
  CHECK(weights_in(f) == numbers{0.1F, 0.1F, 2, 2, 2});
  CHECK(r.out.ends_with("; their weights are in " + (f.scratch.path / "t.weights").string() + "\n"));
  REQUIRE(f.run({.files = {lines}, .field = "text", .weights_field = "w", .end_of_document = "."}).code == 0);
  CHECK(f.text() == "ab..cde.");
  CHECK(weights_in(f) == numbers{0.1F, 0.1F, 0.1F, 0, 2, 2, 2, 2});
}

TEST_CASE("packing keeps the weight of each token, and fillers have the weight 0") {
  const folder f;
  const fs::path lines = f.write("a.jsonl",
                                 "{\"t\": \"abcd\", \"w\": 1}\n{\"t\": \"efghijklmnop\", \"w\": 2}\n"
                                 "{\"t\": \"qrs\", \"w\": 3}\n");
  const tokens_options o{
      .files = {lines}, .field = "t", .weights_field = "w", .end_of_document = ".", .pack = 9};
  REQUIRE(f.run(o).code == 0);
  CHECK(f.text() == "abcd.nop.efghijklmqrs.......");
  CHECK(digits_in(f) ==
        "011110222"
        "022222222"
        "033300000"
        "0");
}

const std::string turn = R"({"role": "user", "content": "a"}, )",
                  own = R"({"role": "assistant", "content": "b")";

std::string messages(const std::string& all, const std::string& more = "") {
  return "{\"messages\": [" + all + "]" + more + "}\n";
}

TEST_CASE("labels of a conversation have the weight of their message, or of their line") {
  const folder f;
  const fs::path lines =
      f.write("a.jsonl", messages(turn + own + ", \"w\": 3}, " + turn + own + "}", ", \"w\": 5") +
                             messages(turn + own + ", \"w\": 7}"));
  const tokens_options o{.files = {lines}, .weights_field = "w", .chat = "chatml"};
  const result r = f.run(o);
  REQUIRE_MESSAGE(r.code == 0, r.errors);
  std::string expected, labels = f.labels();
  int turns = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (i > 0 && labels[i] == '1' && labels[i - 1] == '0') ++turns;
    expected += labels[i] == '0' ? '0' : "0357"[turns];
  }
  REQUIRE(turns == 3);
  CHECK(digits_in(f) == expected);
  tokens_options packed = o;
  packed.end_of_document = "0";
  packed.pack = 256;
  REQUIRE(f.run(packed).code == 0);
  const std::string digits = digits_in(f);
  labels = f.labels();
  REQUIRE(digits.size() == 257);
  for (std::size_t i = 0; i < labels.size(); ++i) CHECK((digits[i] == '0') == (labels[i] == '0'));
  for (const char weight : {'3', '5', '7'})  // "b<|im_end|>"
    CHECK(std::count(digits.begin(), digits.end(), weight) == 11);
}

TEST_CASE("with --loss all each message weighs its own text, and the first one also the text before it") {
  const folder f;
  const std::string user = R"({"role": "user", "content": "a", "w": 2}, )";
  const fs::path lines =
      f.write("a.jsonl", messages(user + own + ", \"w\": 0}") + messages(turn + own + "}", ", \"w\": 4"));
  REQUIRE(f.run({.files = {lines}, .weights_field = "w", .chat = "llama3", .loss = "all"}).code == 0);
  const std::string text = f.text(), digits = digits_in(f);
  const std::size_t second = text.find("<|begin_of_text|>", 1),
                    reply = text.find("<|start_header_id|>assistant");
  REQUIRE(second < text.size());
  CHECK(digits == "0" + std::string(reply - 1, '2') + std::string(second - reply, '0') + "0" +
                      std::string(text.size() - second - 1, '4'));
}

TEST_CASE("a label without a weight, and a value that is none, are refused with their line") {
  const folder f;
  const auto refused = [&](const std::string& line, const char* chat) {
    const fs::path file = f.write("a.jsonl", line);
    tokens_options o{.files = {file}, .weights_field = "w", .chat = chat};
    if (o.chat.empty()) o.field = "t";
    test::said all = f.refused(o);
    CHECK(all.arguments.front().starts_with(file.string() + ":1"));
    all.arguments.erase(all.arguments.begin());
    return all;
  };
  const std::string rule = "a weight, which is 0, or from 7.888609052210118e-31 to 1.2676506002282294e+30";
  CHECK(refused("{\"t\": \"a\"}", "") == test::said{6589, {"w", "null", "a number"}});
  CHECK(refused("{\"t\": \"a\", \"w\": true}", "") == test::said{6589, {"w", "true", "a number"}});
  for (const char* const wrong : {"-1.0", "1e-31", "1e-50", "1e31", "1e300"})
    CHECK(refused("{\"t\": \"a\", \"w\": " + std::string(wrong) + "}", "").arguments.back() == rule);
  CHECK(refused(messages(turn + own + ", \"w\": -1}"), "chatml") ==
        test::said{6589, {"messages[1].w", "-1", rule}});
  CHECK(refused(messages(turn + own + "}", ", \"w\": \"1\""), "chatml") ==
        test::said{6589, {"w", "\"1\"", "a number"}});
  CHECK(refused(messages(turn + own + "}"), "chatml") == test::said{6300, {"1", "w"}});
  CHECK(refused(messages(turn + own + ", \"weight\": 1}"), "chatml").id == 6703);
  CHECK_FALSE(fs::exists(f.out));
  CHECK_FALSE(fs::exists(f.scratch.path / "t.weights"));
}

TEST_CASE("weights that cannot be kept are refused, and no other file is overwritten") {
  const folder f;
  const fs::path lines = f.write("a.jsonl", "{\"t\": \"ab\", \"w\": 1}\n"),
                 weights = f.scratch.path / "t.weights";
  const tokens_options o{.files = {lines}, .field = "t", .weights_field = "w"};
  CHECK(f.refused({.files = {lines}, .weights_field = "w"}, 2) == test::said{6301, {"w"}});
  f.write("t.weights", "a model");
  CHECK(f.refused(o, 2) == test::said{6302, {weights.string(), f.out.string()}});
  fs::remove(weights);
  for (int run = 0; run < 2; ++run) REQUIRE(f.run(o).code == 0);
  f.write("a.jsonl", "{\"t\": \"abc\", \"w\": 1}\n");
  REQUIRE(f.run(o).code == 0);
  CHECK(weights_in(f) == numbers{1, 1, 1});
  f.write("t.weights", std::string(16, '\0'));
  CHECK(f.refused(o, 2) == test::said{6302, {weights.string(), f.out.string()}});
  fs::remove(f.out);
  fs::remove(weights);
  fs::rename(lines, weights);
  CHECK(f.refused({.files = {weights}, .field = "t", .weights_field = "w"}, 2).id == 5020);
}

}  // namespace weighing

}  // namespace tokens_test

}  // namespace rankc::tool
