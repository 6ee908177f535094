// SPDX-License-Identifier: Apache-2.0
// Text generation from a checkpoint: the choice of a token, and the command.
#include <rankc/trainer/generate.hpp>

#include "../../exit_with.hpp"
#include "../../tokenizer_with.hpp"
#include "fake_run.hpp"

#include <doctest/doctest.h>
#include <rankc/trainer/prompt_text.hpp>
#include <array>
#include <cmath>

using namespace rankc::runtime;
using rankc::test::exit_with, rankc::test::said_in;

TEST_CASE("tokens are chosen by their chances") {
  const std::vector<double> logits{1, 3, 2, 3, -50};
  CHECK(choose_token(logits, {.temperature = 0}, 0) == 1);  // the first of the most likely tokens
  CHECK(choose_token(logits, {.temperature = 0, .top_k = 0, .seed = 9}, 7) == 1);
  const auto counts = [&](const sampling& how) {
    std::array<int, 5> seen{};
    for (std::uint64_t i = 0; i < 20000; ++i) ++seen[static_cast<std::size_t>(choose_token(logits, how, i))];
    return seen;
  };
  for (const double temperature : {1.0, 0.5}) {
    double sum = 0;
    for (const double x : logits) sum += std::exp(x / temperature);
    const auto seen = counts({.temperature = temperature});
    for (std::size_t i = 0; i < 5; ++i)  // within five standard deviations
      CHECK(std::abs(seen[i] - 20000 * std::exp(logits[i] / temperature) / sum) <
            5 * std::sqrt(20000 * 0.25));
    CHECK(seen[4] == 0);
  }
  const auto of_two = counts({.temperature = 1, .top_k = 2});
  CHECK(of_two[1] + of_two[3] == 20000);
  CHECK(std::abs(of_two[1] - 10000) < 400);
  CHECK(counts({.temperature = 1, .top_k = 1})[1] == 20000);
  CHECK(counts({.temperature = 1, .top_k = 99}) == counts({.temperature = 1}));
  CHECK(counts({.temperature = 1, .seed = 1}) != counts({.temperature = 1, .seed = 2}));
}

TEST_CASE("generate prints the prompt and what follows, the same in every layout") {
  const scratch files;
  fake_program one(1, 1, 1), many(2, 2, 2);
  one.leave_logits();
  many.leave_logits();
  const std::string save = files.path("s");
  REQUIRE(run(one, {"train", "--steps", "1", "--save", save}).code == 0);
  for (const fake_program* p : {&one, &many}) {
    const outcome greedy =
        run(*p, {"generate", "--load", save, "--prompt", "a", "--tokens", "6", "--temperature", "0"});
    CHECK_MESSAGE(greedy.code == 0, greedy.err);
    CHECK(greedy.out == "abcdefg\n");  // longer than seq: 4
    CHECK(run(*p, {"generate", "--load", save, "--tokens", "2", "--temperature", "0"}).out == "\n\x0b\x0c\n");
    const auto drawn = [&](const char* seed, const char* k) {
      return run(*p, {"generate", "--load", save, "--prompt", "a", "--tokens", "30", "--seed", seed,
                      "--top-k", k})
          .out;
    };
    CHECK(drawn("5", "3") == drawn("5", "3"));
    CHECK(drawn("5", "3") != drawn("6", "3"));
    CHECK(drawn("5", "1") == "a" + std::string("bcdefghijklmnopqrstuvwxyz{|}~\x7f") + "\n");
  }
  const std::string ids = files.write("ids", "3, 4\n250");
  CHECK(run(one, {"generate", "--load", save, "--prompt-tokens", ids, "--tokens", "3", "--temperature", "0"})
            .out == "3 4 250 251 252 253 \n");
}

TEST_CASE("generate stops behind the token that ends documents, and a seed may have 64 bits") {
  const scratch files;
  fake_program program(1, 1, 1);
  program.leave_logits();
  const std::string save = files.path("s");
  REQUIRE(run(program, {"train", "--steps", "1", "--save", save}).code == 0);
  const auto text = [&] {
    return run(program, {"generate", "--load", save, "--prompt", "a", "--tokens", "6", "--top-k", "1",
                         "--seed", "18446744073709551615"})
        .out;
  };
  CHECK(text() == "abcdefg\n");
  program.about.end_of_document = 'e';
  CHECK(text() == "abcde\n");
}

#ifdef RANKC_TEXT_LIBRARIES
TEST_CASE("generate reads and prints text by a tokenizer.json") {
  const scratch files;
  fake_program program(1, 1, 1, dtype::f64, 600), small(1, 1, 1, dtype::f64, 500);
  program.leave_logits();
  small.leave_logits();
  const std::string save = files.path("s"), oracles = RANKC_TOKENIZERS;
  REQUIRE(run(program, {"train", "--steps", "1", "--save", save}).code == 0);
  const auto text = [&](const fake_program& p, const std::string& by, const char* prompt) {
    return run(p, {"generate", "--load", save, "--prompt", prompt, "--tokens", "3", "--temperature", "0",
                   "--tokenizer", by});
  };
  // The next token is the last one's id plus one, and a vocabulary begins with the printable bytes.
  CHECK(text(program, oracles + "/gpt2.json", "<|begin|>x").out == "<|begin|>xyz{\n");
  CHECK(text(program, oracles + "/llama3.json", "<|begin|>").out == "<|begin|><|end|><|end_of|><559>\n");
  CHECK(text(program, "bytes", "x").out == "xyz{\n");
  files.write("hf/tokenizer.json", contents(oracles + "/gpt2.json"));
  CHECK(text(program, files.path("hf"), "x").out == "xyz{\n");
  const auto refused = [](const outcome& done) { return exit_with{done.code, said_in(done.err)}; };
  CHECK(refused(text(small, oracles + "/gpt2.json", "x")) ==
        exit_with{1, {6070, {oracles + "/gpt2.json", "559", "500"}}});
  CHECK(refused(text(program, files.path("none"), "x")).message.id == 6585);
}

TEST_CASE("generate writes a user's message by a chat template, and stops behind the assistant's turn") {
  const scratch files;
  fake_program program(1, 1, 1, dtype::f64, 600);
  program.leave_logits();
  const std::string save = files.path("s"), plain = std::string(RANKC_TOKENIZERS) + "/llama3.json";
  const std::string with_tokens = files.write(
      "tokenizer.json", rankc::test::tokenizer_with(plain, {"<s>", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]",
                                                            "[INST]", "[/INST]", "<x>", "</s>", "<y>"}));
  REQUIRE(run(program, {"train", "--steps", "1", "--save", save}).code == 0);
  const auto text = [&](const std::string& by, std::vector<std::string> words) {
    words.insert(words.begin(), {"generate", "--load", save, "--tokens", "5", "--temperature", "0",
                                 "--tokenizer", by, "--prompt", "a"});
    return run(program, words);
  };
  CHECK(text(with_tokens, {"--chat", "mistral"}).out == "<s>[INST]a[/INST]<x></s>\n");
  CHECK(text("bytes", {"--chat", "chatml"}).out ==
        "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n\v\f\r\x0e\x0f\n");
  CHECK(text("bytes", {"--chat", "chatml"}).err.find("note") == std::string::npos);
  const outcome without =
      run(program, {"generate", "--load", save, "--tokens", "5", "--prompt", "a", "--chat", "chatml"});
  CHECK(without.code == 0);
  CHECK(said_in(without.err) == rankc::test::said{6292, {"chatml"}});
  const auto refused = [](const outcome& done) { return exit_with{done.code, said_in(done.err)}; };
  CHECK(refused(text(plain, {"--chat", "chatml"})) ==
        exit_with{1, {6073, {plain, "<|im_start|>", "chatml", "chatml, llama3, mistral, gemma, gpt-oss"}}});
  CHECK(refused(text("bytes", {"--chat", "gpt-oss"})) == exit_with{2, {6725, {"gpt-oss", ""}}});
  for (const std::string date : {"2025-99-99", "2025-02-29", "2025-04-31", "2025-00-10"})
    CHECK(refused(text("bytes", {"--chat", "gpt-oss", "--date", date})) ==
          exit_with{2, {6725, {"gpt-oss", date}}});
  CHECK(text("bytes", {"--chat", "gpt-oss", "--date", "2024-02-29"}).code == 0);
  CHECK(refused(text("bytes", {"--chat", "qwen"})).message.id == 6720);
  CHECK(text("bytes", {"--date", "2025-08-05"}).code == 2);
}

TEST_CASE("without --tokenizer the folder that the run began with has the tokenizer") {
  const scratch files;
  const fake_program program(1, 1, 1, dtype::f64, 600);
  std::vector<std::string> notes;
  files.write("hf/tokenizer.json", contents(std::string(RANKC_TOKENIZERS) + "/llama3.json"));
  const prompt_text by(program.about, "", files.path("hf"), notes);
  CHECK(by.tokens_of("<|end|>") == std::vector<std::int32_t>{557});
  CHECK(by.opening() == std::vector<std::int32_t>{556});
  CHECK(by.text_of(558) == "<|end_of|>");
  CHECK(by.text_of(599) == "<599>");
  const prompt_text none(program.about, "", files.path(), notes);
  CHECK(none.tokens_of("a\xff") == std::vector<std::int32_t>{97, 255});
  CHECK(none.opening().empty());
  CHECK(none.text_of(300) == "<300>");
  CHECK(notes.empty());
  files.write("hf/tokenizer.json", "{\"normalizer\": 1}");
  const prompt_text unread(program.about, "", files.path("hf"), notes);
  CHECK(unread.tokens_of("ab").size() == 2);
  REQUIRE(notes.size() == 1);
  CHECK(said_in(notes[0]).id == 6071);
}
#endif

TEST_CASE("what generate cannot do is refused") {
  const scratch files;
  fake_program program(1, 1, 1), narrow(1, 1, 1, dtype::f64, 100);
  const fake_program without(1, 1, 1);
  program.leave_logits();
  narrow.leave_logits();
  const std::string save = files.path("s");
  REQUIRE(run(program, {"train", "--steps", "1", "--save", save}).code == 0);
  const auto says = [&](const fake_program& p, std::vector<std::string> words) {
    words.insert(words.begin(), {"generate", "--load", save});
    const outcome done = run(p, words);
    CHECK(done.installs == 0);
    CHECK(done.out == "");
    CHECK(done.err.starts_with("fake: RC"));
    return exit_with{done.code, said_in(done.err)};
  };
  CHECK(says(without, {}) == exit_with{1, {6065, {"fake"}}});
  CHECK(says(narrow, {}) == exit_with{2, {6068, {"100"}}});
  CHECK(says(program, {"--prompt", ""}) == exit_with{2, {6020, {"--prompt"}}});
  CHECK(says(program, {"--prompt-tokens", files.write("a", "1 256")}) ==
        exit_with{1, {6066, {files.path("a"), "256", "255"}}});
  CHECK(says(program, {"--prompt-tokens", files.write("a", std::string("1 \0x", 4))}) ==
        exit_with{1, {6066, {files.path("a"), "\\x00x", "255"}}});
  CHECK(says(program, {"--prompt-tokens", files.write("b", " ,\n")}) ==
        exit_with{1, {6067, {files.path("b")}}});
  CHECK(says(program, {"--prompt", "a", "--prompt-tokens", "b"}).code == 2);
  CHECK(says(program, {"--tokenizer", "a", "--prompt-tokens", "b"}).code == 2);
  for (const char* temperature : {"-1", "nan", "inf"})
    CHECK(says(program, {"--temperature", temperature}).code == 2);
  for (const char* option : {"--tokens", "--top-k"}) CHECK(says(program, {option, "0"}).code == 2);
  CHECK(run(program, {"generate"}).code == 2);
}
