// SPDX-License-Identifier: Apache-2.0
// `rankc tokens --chat`: tokens and labels of conversations equal transformers' (tests/oracles/chat).
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "../../tokenizer_with.hpp"
#include "tokens_folder.hpp"

namespace rankc::tool {

namespace tokens_test {

namespace chat {

using nlohmann::json;

json read(const fs::path& file) {
  std::ifstream in(file);
  return json::parse(in);
}

std::string line_of(const json& messages) { return json{{"messages", messages}}.dump() + "\n"; }
std::string line_of(const char* question, const char* answer) {
  return line_of(
      json::array({{{"role", "user"}, {"content", question}}, {{"role", "assistant"}, {"content", answer}}}));
}

#ifdef RANKC_TEXT_LIBRARIES
/// The tokenizer of llama3.json with the oracle's special tokens.
std::string tokenizer_of(const json& oracle) {
  return test::tokenizer_with(RANKC_TOKENIZERS "/llama3.json",
                              oracle["special"].get<std::vector<std::string>>());
}

TEST_CASE("tokens and labels are those of transformers, for every template and conversation") {
  const folder f;
  const json all = read(fs::path(RANKC_CHATS) / "cases.json");
  const fs::path model = f.write("tokenizer.json", tokenizer_of(all));
  for (const json& c : all["cases"]) {
    const auto name = c["template"].get<std::string>();
    CAPTURE(name);
    CAPTURE(c["chat"].get<std::string>());
    const fs::path lines = f.write("a.jsonl", line_of(all["chats"][c["chat"].get<std::string>()]));
    tokens_options o{.files = {lines}, .model = model, .chat = name};
    if (name == "gpt-oss") o.date = all["date"];
    const result r = f.run(o);
    REQUIRE_MESSAGE(r.code == 0, r.errors);
    CHECK(f.written() == c["ids"].get<ids>());
    auto expected = c["labels"].get<std::string>();
    expected.front() = '0';  // no token of the conversation precedes the first
    CHECK(f.labels() == expected);
    o.loss = "all";
    REQUIRE(f.run(o).code == 0);
    CHECK(f.labels() == "0" + std::string(expected.size() - 1, '1'));
  }
}

TEST_CASE("a tokenizer that normalizes keeps the labels where they are") {
  const folder f;
  const json all = read(fs::path(RANKC_CHATS) / "cases.json");
  json root = json::parse(tokenizer_of(all));
  root["normalizer"] = {{"type", "NFC"}};
  const tokens_options o{.files = {f.write("a.jsonl", line_of("e\u0301", "a\u030a") + line_of("b", "c"))},
                         .model = f.write("tokenizer.json", root.dump()),
                         .chat = "chatml"};
  REQUIRE(f.run(o).code == 0);
  const std::string labels = f.labels();
  // The two bytes of a letter that NFC has composed from four, or one letter; then <
  // im_end
  // >.
  CHECK(std::count(labels.begin(), labels.end(), '1') >= 4);
  CHECK(labels.ends_with("110"));
}

TEST_CASE("a model without the tokens of a template, or with text of its own, is refused") {
  const folder f;
  const fs::path lines = f.write("a.jsonl", line_of("a", "b")),
                 plain = fs::path(RANKC_TOKENIZERS) / "llama3.json";
  CHECK(f.refused({.files = {lines}, .model = plain, .chat = "chatml"}) ==
        test::said{8142,
                   {plain.string(), "<|im_start|>", "chatml", "chatml, llama3, mistral, gemma, gpt-oss"}});
  json root = json::parse(tokenizer_of(read(fs::path(RANKC_CHATS) / "cases.json")));
  root["pre_tokenizer"] = {
      {"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
  CHECK(f.refused({.files = {lines}, .model = f.write("tokenizer.json", root.dump()), .chat = "chatml"}).id ==
        6705);
}
#endif

TEST_CASE("by bytes: the labels are the assistant's turns with their ends") {
  const folder f;
  const std::string user = "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n", answer = "bc<|im_end|>";
  const fs::path lines = f.write("a.jsonl", line_of("a", "bc") + "\n" + line_of("a", "bc"));
  const result r = f.run({.files = {lines}, .chat = "chatml"});
  CHECK(f.text() == user + answer + "\n" + user + answer + "\n");
  const std::string once = std::string(user.size(), '0') + std::string(answer.size(), '1') + "0";
  CHECK(f.labels() == once + once);
  CHECK(r.out == f.out.string() +
                     ": 128 tokens of 1 files by bytes, for a plan with vocab 256 or more; 24 are "
                     "labels\n");
  CHECK(r.errors == "");
  REQUIRE(f.run({.files = {lines}, .chat = "chatml", .end_of_document = "0"}).code == 0);
  CHECK(f.labels() == once + "0" + once + "0");
  CHECK(f.written().back() == 0);
}

TEST_CASE("conversations that are not trained on as expected cost a note") {
  const folder f;
  const fs::path lines = f.write("a.jsonl", line_of("a", "b") + line_of("<|im_end|>", "b") +
                                                line_of("a", "[INST] <|im_start|>") +
                                                line_of(json::array({{{"role", "user"}, {"content", "a"}}})));
  const result r = f.run({.files = {lines}, .chat = "chatml"});
  CHECK(r.code == 0);
  CHECK(test::said_in(r.errors, 8143) == test::said{8143, {"2", "chatml", lines.string() + ":2"}});
  CHECK(test::said_in(r.errors, 8144) == test::said{8144, {"1", "4"}});
}

TEST_CASE("options that a conversation does not allow are refused") {
  const folder f;
  const fs::path lines = f.write("a.jsonl", line_of("a", "b"));
  CHECK(f.refused({.files = {lines}, .chat = "qwen"}, 2).id == 6720);
  CHECK(f.refused({.files = {lines}, .chat = "gpt-oss"}, 2) == test::said{6725, {"gpt-oss", ""}});
  CHECK(f.refused({.files = {lines}, .chat = "gpt-oss", .date = "5.8.2025"}, 2) ==
        test::said{6725, {"gpt-oss", "5.8.2025"}});
  CHECK(f.refused({.files = {lines}, .chat = "chatml", .date = "2025-08-05"}, 2) ==
        test::said{6726, {"chatml", "2025-08-05"}});
  CHECK(f.refused({.files = {lines}, .chat = "chatml", .loss = "user"}, 2) == test::said{8146, {"user"}});
  CHECK(f.refused({.files = {lines}, .chat = "chatml", .end_of_document = "98"}) ==
        test::said{8149, {lines.string() + ":1", "98"}});
  CHECK(f.refused({.files = {lines}, .chat = "chatml", .end_of_document = "256"}) ==
        test::said{8148, {"256", "bytes", "255"}});
  const fs::path broken = f.write("b.jsonl", line_of("a", "b") + "\n{\"messages\": 1}\n");
  CHECK(f.refused({.files = {broken}, .chat = "chatml"}) ==
        test::said{6589, {broken.string() + ":3", "messages", "1", "a list"}});
}

TEST_CASE("a mask never belongs to other tokens than those it was written with") {
  const folder f;
  const fs::path lines = f.write("a.jsonl", line_of("a", "b")), mask = f.scratch.path / "t.mask";
  REQUIRE(f.run({.files = {lines}, .chat = "chatml"}).code == 0);
  CHECK(f.refused({.files = {lines}}, 2) == test::said{8145, {mask.string(), f.out.string()}});
  CHECK(f.run({.files = {lines}, .chat = "chatml"}).code == 0);
  f.write("t.mask", "a user's text");
  CHECK(f.refused({.files = {lines}, .chat = "chatml"}, 2).id > 0);
  CHECK(read(lines).contains("messages"));
  fs::remove(mask);
  fs::create_symlink("gone", mask);
  CHECK(f.refused({.files = {lines}}, 2) == test::said{8145, {mask.string(), f.out.string()}});
  fs::remove(mask);
  fs::rename(lines, mask);
  CHECK(f.refused({.files = {mask}, .chat = "chatml"}, 2).id > 0);
}

TEST_CASE("weights never belong to other tokens than those they were written for") {
  const folder f;
  const fs::path lines = f.write("a.jsonl", line_of("a", "b")),
                 weights = f.write("t.weights", std::string(8, '\0'));
  for (const char* const chat : {"", "chatml"})
    CHECK(f.refused({.files = {lines}, .chat = chat}, 2) ==
          test::said{7512, {weights.string(), f.out.string()}});
  fs::remove(weights);
  CHECK(f.run({.files = {lines}, .chat = "chatml"}).code == 0);
}

}  // namespace chat

}  // namespace tokens_test

}  // namespace rankc::tool
