// SPDX-License-Identifier: Apache-2.0
// `rankc tokens` with a model trained here, decoded by SentencePiece itself.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include "tokens_folder.hpp"

namespace rankc::tool {

TEST_CASE("tokens by a model of SentencePiece decode to the text") {
  namespace fs = std::filesystem;
  const scratch_folder scratch;
  const fs::path& folder = scratch.path;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "the rank of line " + std::to_string(i * i) + " sends what it has\n";
  std::ofstream(folder / "a.txt") << text;
  std::ofstream(folder / "b.txt") << "the line sends";
  const std::string prefix = (folder / "m").string();
  REQUIRE(sentencepiece::SentencePieceTrainer::Train("--input=" + (folder / "a.txt").string() +
                                                     " --model_prefix=" + prefix +
                                                     " --vocab_size=60 --model_type=bpe --minloglevel=2")
              .ok());
  std::ostringstream out, errors;
  REQUIRE(tokens({folder / "t.bin", {folder / "a.txt", folder / "b.txt"}, prefix + ".model", true}, out,
                 errors) == 0);
  CHECK(
      out.str().ends_with(" tokens of 2 files by " + prefix + ".model, for a plan with vocab 60 or more\n"));
  std::ifstream in(folder / "t.bin", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::vector<int>> texts(1);
  for (std::size_t at = 1024; at < bytes.size(); at += 2) {
    std::uint16_t token;
    std::memcpy(&token, bytes.data() + at, 2);
    if (token == 2) texts.emplace_back();  // </s>
    else texts.back().push_back(token);
  }
  REQUIRE(texts.size() == 3);
  CHECK(texts[2].empty());
  sentencepiece::SentencePieceProcessor processor;
  REQUIRE(processor.Load(prefix + ".model").ok());
  std::string decoded;
  REQUIRE(processor.Decode(texts[1], &decoded).ok());
  CHECK(decoded == "the line sends");
  REQUIRE(processor.Decode(texts[0], &decoded).ok());
  // SentencePiece's normaliser turns line ends into spaces.
  std::string spaced = text.substr(0, text.size() - 1);
  for (char& c : spaced)
    if (c == '\n') c = ' ';
  CHECK(decoded == spaced);
  CHECK(texts[0].size() < text.size() / 2);
}

TEST_CASE("a conversation by a model that keeps the text has the labels of the template") {
  const tokens_test::folder f;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "the rank of line " + std::to_string(i * i) + " sends what it has\n";
  const std::string corpus = f.write("a.txt", text).string(), prefix = (f.scratch.path / "m").string();
  const auto train = [&](const std::string& more) {
    REQUIRE(
        sentencepiece::SentencePieceTrainer::Train("--input=" + corpus + " --model_prefix=" + prefix +
                                                   " --model_type=bpe --minloglevel=2 --vocab_size=360 "
                                                   "--byte_fallback=true --bos_piece=<bos> "
                                                   "--user_defined_symbols=<start_of_turn>,<end_of_turn>" +
                                                   more)
            .ok());
  };
  const tokens_options o{.files = {f.scratch.path / "a.jsonl"}, .model = prefix + ".model", .chat = "gemma"};
  train(" --normalization_rule_name=identity --add_dummy_prefix=false --remove_extra_whitespaces=false");
  sentencepiece::SentencePieceProcessor processor;
  REQUIRE(processor.Load(prefix + ".model").ok());
  // The model has no piece for U+6F22, so that it becomes three bytes.
  for (const std::string answer : {"the  rank\n of line", "\u6f22 rank", "rank \u6f22\u6f22", "\u6f22"}) {
    CAPTURE(answer);
    f.write("a.jsonl", nlohmann::json({{"messages",
                                        {{{"role", "user"}, {"content", "which rank \u6f22"}},
                                         {{"role", "assistant"}, {"content", answer}}}}})
                           .dump());
    const tokens_test::result r = f.run(o);
    REQUIRE_MESSAGE(r.code == 0, r.errors);
    std::vector<int> all = f.written(), labels;
    const std::string mask = f.labels();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (mask[i] == '1') labels.push_back(all[i]);
    CHECK(all.front() == processor.bos_id());
    all.erase(all.begin());
    std::string decoded;
    REQUIRE(processor.Decode(all, &decoded).ok());
    CHECK(decoded == "<start_of_turn>user\nwhich rank \u6f22<end_of_turn>\n<start_of_turn>model\n" + answer +
                         "<end_of_turn>\n");
    REQUIRE(processor.Decode(labels, &decoded).ok());
    CHECK(decoded == answer + "<end_of_turn>");
  }
  train("");
  CHECK(f.refused(o) == test::said{8151, {prefix + ".model"}});
}

}  // namespace rankc::tool
