// SPDX-License-Identifier: Apache-2.0
// Fine-tuning by commands: from a Hugging Face folder and a file of conversations to a folder with merged
// weights.
#include "../extremes/bounded_run.hpp"
#include "../runtime/trainer/scratch.hpp"
#include "../slowness.hpp"
#include "../tokenizer_with.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <regex>

namespace {

using nlohmann::json;
using rankc::runtime::contents, rankc::runtime::scratch;
using words = std::vector<std::string>;

const std::string base = FINE_TUNING_BASE, adapted = FINE_TUNING_ADAPTED, tool = FINE_TUNING_TOOL;

struct folder {
  scratch files;

  /// Runs a command that must succeed.
  /// Returns: its output.
  std::string run(const words& all) const {
    const auto limit = rankc::test::scaled(60);
    const auto done = rankc::test::run_bounded(all, files.path(), limit, limit);
    REQUIRE_MESSAGE(done.code == 0, done.err);
    return done.out;
  }
  double eval(const std::string& program, const char* option, const char* weights) const {
    const std::string out = run({program, "eval", option, weights, "--data", "chat.bin"});
    std::smatch found;
    REQUIRE(std::regex_search(out, found, std::regex("eval: loss ([0-9.]+) nats per token")));
    return std::stod(found[1]);
  }
};

std::string conversations() {
  std::string lines;
  for (int i = 0; i < 40; ++i) {
    const json messages = json::array({{{"role", "user"}, {"content", "Is " + std::to_string(i) + " even?"}},
                                       {{"role", "assistant"}, {"content", i % 2 == 0 ? "yes" : "no"}}});
    lines += json{{"messages", messages}}.dump() + "\n";
  }
  return lines;
}

}  // namespace

TEST_CASE("conversations, a folder of Hugging Face, LoRA, and a merged folder") {
  const folder f;
  f.run({base, "train", "--steps", "60", "--lr", "1e-2", "--save", "began"});
  f.run({base, "export", "--load", "began", "--format", "huggingface", "--out", "hf"});
  const std::string tokenizer = rankc::test::tokenizer_with(std::string(RANKC_TOKENIZERS) + "/llama3.json",
                                                            {"<|im_start|>", "<|im_end|>", "<|endoftext|>"});
  f.files.write("hf/tokenizer.json", tokenizer);
  f.files.write("chat.jsonl", conversations());
  const std::string made = f.run({tool, "tokens", "--model", "hf", "--chat", "chatml", "--pack", "64",
                                  "--end-of-document", "<|endoftext|>", "--out", "chat.bin", "chat.jsonl"});
  CHECK(made.find("packed: 40 examples in ") != std::string::npos);
  const std::string trained =
      f.run({adapted, "train", "--init", "hf", "--data", "chat.bin", "--steps", "60", "--lr", "1e-2",
             "--shuffle", "1", "--save", "tuned", "--metrics", "metrics.jsonl"});
  CHECK(trained.find(" are labels") != std::string::npos);
  CHECK(trained.find("RC6199") == std::string::npos);
  CHECK(trained.find("RC622") == std::string::npos);
  f.run({adapted, "export", "--load", "tuned", "--merge", "--format", "huggingface", "--out", "merged"});
  CHECK(contents(f.files.path("merged/tokenizer.json")) == tokenizer);
  const double before = f.eval(base, "--init", "hf"), after = f.eval(base, "--init", "merged"),
               of_adapters = f.eval(adapted, "--load", "tuned");
  CHECK(after < 0.8 * before);
  CHECK(after == doctest::Approx(of_adapters).epsilon(1e-5));  // f32 weights are added in another order
  const std::string said = f.run({adapted, "generate", "--load", "tuned", "--chat", "chatml", "--prompt",
                                  "Is 4 even?", "--tokens", "4", "--temperature", "0"});
  CHECK(said.starts_with("<|im_start|>user\nIs 4 even?<|im_end|>\n<|im_start|>assistant\n"));
}
