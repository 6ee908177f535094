// SPDX-License-Identifier: Apache-2.0
// `rankc tokens` by a model that is trained here, read back by SentencePiece's own decoder.
#include "../../scratch_folder.hpp"

#include <doctest/doctest.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>
#include <tokens.hpp>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

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
  std::string spaced = text.substr(0, text.size() - 1);  // its normaliser takes line ends for spaces
  for (char& c : spaced)
    if (c == '\n') c = ' ';
  CHECK(decoded == spaced);
  CHECK(texts[0].size() < text.size() / 2);
}

}  // namespace rankc::tool
