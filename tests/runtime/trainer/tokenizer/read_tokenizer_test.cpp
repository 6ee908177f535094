// SPDX-License-Identifier: Apache-2.0
// Unsupported files are refused with file, field and value; both forms of merges, of templates and of
// tokenizer_config.json are read.
#include "../../../exit_with.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "oracle.hpp"

using namespace rankc::test;
using nlohmann::json;

namespace {

using ints = std::vector<std::int32_t>;

/// The refusal of gpt2.json with other fields, without the file's name.
said refused(const json& patch) {
  exit_with all = exit_of([&] { read(patched(oracle("gpt2"), patch)); });
  CHECK(all.code == 1);
  REQUIRE(!all.message.arguments.empty());
  CHECK(all.message.arguments.front().ends_with("tokenizer.json"));
  all.message.arguments.erase(all.message.arguments.begin());
  return all.message;
}

json split_at(const json& pattern, const json& behavior = "Isolated") {
  return {{"pre_tokenizer",
           {{"type", "Sequence"},
            {"pretokenizers",
             {{{"type", "Split"}, {"pattern", pattern}, {"behavior", behavior}, {"invert", false}},
              {{"type", "ByteLevel"}}}}}}};
}

json of_type(const char* type) { return {{"type", type}}; }

}  // namespace

TEST_CASE("fields outside the supported subset are refused by their path") {
  CHECK(refused({{"truncation", {{"max_length", 8}}}}) ==
        said{6589, {"truncation", "{\"max_length\":8}", "null"}});
  CHECK(refused({{"padding", 1}}) == said{6589, {"padding", "1", "null"}});
  CHECK(refused({{"extra", 1}}).id == 6703);
  CHECK(refused({{"extra", 1}}).arguments.front() == "extra");
  CHECK(refused({{"normalizer", of_type("NFKC")}}) ==
        said{6589, {"normalizer.type", "\"NFKC\"", "NFC, Sequence or no normalizer"}});
  CHECK(refused(
            {{"normalizer", {{"type", "Sequence"}, {"normalizers", {of_type("NFC"), of_type("Lowercase")}}}}})
            .arguments.front() == "normalizer.normalizers[1].type");
  CHECK(refused({{"pre_tokenizer", of_type("Metaspace")}}) ==
        said{6589, {"pre_tokenizer.type", "\"Metaspace\"", "ByteLevel, Split, Digits or Sequence"}});
  CHECK(refused({{"pre_tokenizer", nullptr}}) ==
        said{6589, {"pre_tokenizer", "null", "one that ends with ByteLevel"}});
  CHECK(refused({{"pre_tokenizer", {{"type", "Digits"}, {"individual_digits", true}}}}).arguments.front() ==
        "pre_tokenizer");
  CHECK(refused({{"pre_tokenizer",
                  {{"type", "Sequence"}, {"pretokenizers", {of_type("ByteLevel"), of_type("Digits")}}}}})
            .arguments.front() == "pre_tokenizer.pretokenizers[1]");
  const char* pattern = "pre_tokenizer.pretokenizers[0].pattern.Regex";
  CHECK(
      refused(split_at({{"Regex", "a\\w"}})) ==
      said{6589, {pattern, "\"a\\\\w\"", "a pattern that PCRE2 can match; \\w at byte 2 is not supported"}});
  CHECK(refused(split_at({{"Regex", "a*"}})).arguments.back().ends_with("it can match an empty text"));
  CHECK(refused(split_at({{"String", ""}})).arguments.back().ends_with("it can match an empty text"));
  CHECK(refused(split_at({{"Regex", "a"}}, "Doubled")).arguments.front() ==
        "pre_tokenizer.pretokenizers[0].behavior");
  CHECK(refused({{"decoder", of_type("WordPiece")}}).arguments.front() == "decoder.type");
  CHECK(refused({{"post_processor", of_type("RobertaProcessing")}}) ==
        said{6589,
             {"post_processor.type", "\"RobertaProcessing\"", "TemplateProcessing, ByteLevel or Sequence"}});
}

TEST_CASE("models of another kind, and ids that do not fit, are refused") {
  const auto model = [](const json& patch) { return refused({{"model", patch}}); };
  CHECK(model({{"type", "Unigram"}}) == said{6589, {"model.type", "\"Unigram\"", "\"BPE\""}});
  CHECK(model({{"dropout", 0.1}}).arguments.front() == "model.dropout");
  CHECK(model({{"end_of_word_suffix", "</w>"}}) ==
        said{6589, {"model.end_of_word_suffix", "\"</w>\"", "null or an empty text"}});
  CHECK(model({{"vocab", json::object()}}).arguments.front() == "model.vocab");
  CHECK(model({{"vocab", {{"a", -1}}}}) ==
        said{6589, {"model.vocab.a", "-1", "a whole number from 0 to 4194303"}});
  CHECK(model({{"vocab", {{"a", 1 << 22}}}}).arguments.front() == "model.vocab.a");
  CHECK(model({{"vocab", {{"a", 0}, {"b", 0}}}}) ==
        said{6589, {"model.vocab.b", "0", "an id that no other token has"}});
  for (const json& merge : {json("ab"), json("a b c"), json({"a"}), json(1)})
    CHECK(model({{"merges", {merge}}}) ==
          said{6589, {"model.merges[0]", merge.dump(), "\"a b\" or [\"a\", \"b\"]"}});
  CHECK(model({{"merges", {"a \u0416"}}}).arguments.front() == "model.merges[0]");
  CHECK(model({{"byte_fallback", "yes"}}) == said{6589, {"model.byte_fallback", "\"yes\"", "true or false"}});
  json tokens = oracle("gpt2").at("added_tokens");
  tokens[1]["id"] = 600;
  CHECK(refused({{"added_tokens", tokens}}) ==
        said{6589, {"added_tokens[1].id", "600", "557, its id in the vocabulary or the next free one"}});
  tokens[1]["content"] = "";
  CHECK(refused({{"added_tokens", tokens}}).arguments.front() == "added_tokens[1].content");
}

TEST_CASE("a file that is not JSON, is missing or repeats a key is refused") {
  const rankc::runtime::scratch files;
  const auto code = [&](const std::string& text) {
    return exit_of([&] { rankc::runtime::read_tokenizer(files.write("t.json", text)); }).message.id;
  };
  CHECK(code("{") == 6596);
  CHECK(code("[]") == 6589);
  CHECK(code(R"({"model":{},"model":{}})") == 6594);
  CHECK(code(std::string(100, '[')) == 6592);
  CHECK(exit_of([&] { rankc::runtime::read_tokenizer(files.path("none")); }).message.id == 6585);
}

TEST_CASE("the tokens around a text come from the template, else from tokenizer_config.json") {
  const rankc::runtime::scratch files;
  const auto ends = [&](const char* family, const char* config) {
    files.write("tokenizer.json", oracle(family).dump());
    files.write("tokenizer_config.json", config);
    const auto by = rankc::runtime::read_tokenizer(files.path());
    return std::pair(by.begin(), by.end());
  };
  CHECK(ends("gpt2", "{}") == std::pair(ints{}, ints{}));
  CHECK(ends("gpt2", R"({"bos_token": null, "eos_token": "<|end|>"})") == std::pair(ints{}, ints{557}));
  CHECK(ends("gpt2", R"({"bos_token": {"content": "<|end_of|>"}})") == std::pair(ints{558}, ints{}));
  CHECK(ends("llama3", R"({"bos_token": "<|end_of|>", "eos_token": "<|end|>"})") ==
        std::pair(ints{556}, ints{557}));
  CHECK(exit_of([&] { ends("gpt2", R"({"eos_token": "</s>"})"); }) ==
        exit_with{
            1,
            {6589,
             {files.path("tokenizer_config.json"), "eos_token", "\"</s>\"", "a token of tokenizer.json"}}});
  const json special = json::parse(R"({"SpecialToken": {"id": "<|end|>", "type_id": 0}})"),
             text = json::parse(R"({"Sequence": {"id": "A", "type_id": 0}})");
  const auto of_template = [&](const json& single, std::int32_t id) {
    const json processor{
        {"type", "TemplateProcessing"},
        {"single", single},
        {"pair", json::array()},
        {"special_tokens", {{"<|end|>", {{"id", "<|end|>"}, {"ids", {id}}, {"tokens", {"<|end|>"}}}}}}};
    return json{{"post_processor", processor}};
  };
  const auto by = read(patched(oracle("gpt2"), of_template({special, text, special, special}, 557)));
  CHECK(by.begin() == ints{557});
  CHECK(by.end() == ints{557, 557});
  CHECK(refused(of_template({special}, 557)).arguments.front() == "post_processor.single");
  CHECK(refused(of_template({text, text}, 557)).arguments.front() == "post_processor.single[1]");
  CHECK(refused(of_template({text, special}, 999)).arguments.front() == "post_processor");
}
