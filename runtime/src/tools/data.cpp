// SPDX-License-Identifier: Apache-2.0
#include <rankc/runtime/tools/data.hpp>

#include "refusal.hpp"
#include <rankc/runtime/tools/hash.hpp>
#include <rankc/runtime/tools/parse.hpp>

#include <fmt/format.h>
#include <filesystem>
#include <vector>

namespace rankc::runtime {

data_spec parse_data_spec(std::string_view text) {
  using source = data_spec::source;
  for (const auto& [prefix, from] : {std::pair{"arith:", source::arith}, std::pair{"rand:", source::rand}}) {
    if (!text.starts_with(prefix)) continue;
    if (const auto seed = parse_number<std::uint64_t>(text.substr(std::string_view(prefix).size())))
      return {.from = from, .seed = *seed, .path = {}};
    throw refusal(2, "--data {}: the seed is a whole number from 0 to 2^64 - 1, as in {}1234", text, prefix);
  }
  std::string path(text);
  if (text.ends_with(".txt") || text.ends_with(".bin") || std::filesystem::is_directory(path))
    return {.from = source::files, .seed = 0, .path = std::move(path)};
  throw refusal(2,
                "--data {}: is neither a directory nor one of arith:SEED, rand:SEED, FILE.txt (bytes), "
                "FILE.bin (llm.c's tokens)",
                text);
}

dataset::dataset(const data_spec& spec, int vocab, int seq)
    : spec_(spec), vocab_(static_cast<std::uint64_t>(vocab)), seq_(static_cast<std::uint64_t>(seq)) {
  if (spec_.from != data_spec::source::files) return;
  file_ = read_tokens(spec_.path, vocab);
  if (file_.tokens.size() < seq_ + 1)
    throw refusal(1, "{}: holds {} tokens, but one sample takes {} (seq {} and the token after it)",
                  spec_.path, file_.tokens.size(), seq_ + 1, seq_);
}

int dataset::token(std::uint64_t s, std::uint64_t t) const {
  switch (spec_.from) {
    case data_spec::source::arith: {
      const std::uint64_t start = splitmix64(2 * s + spec_.seed) % vocab_;
      const std::uint64_t stride = 1 + splitmix64(2 * s + 1 + spec_.seed) % 7;
      return static_cast<int>((start + stride * t) % vocab_);
    }
    case data_spec::source::rand:
      return static_cast<int>(splitmix64(s * (seq_ + 1) + t + spec_.seed) % vocab_);
    case data_spec::source::files: {
      const std::uint64_t sequences = (file_.tokens.size() - 1) / seq_;
      return file_.tokens[(s % sequences) * seq_ + t];
    }
  }
  return 0;
}

void dataset::sample(std::uint64_t s, std::int32_t* tokens, std::int32_t* targets) const {
  for (std::uint64_t t = 0; t < seq_; ++t) tokens[t] = token(s, t);
  for (std::uint64_t t = 0; t + 1 < seq_; ++t) targets[t] = tokens[t + 1];
  targets[seq_ - 1] = token(s, seq_);
}

std::string dataset::text() const {
  switch (spec_.from) {
    case data_spec::source::arith:
      return fmt::format("arithmetic sequences, seed {}", spec_.seed);
    case data_spec::source::rand:
      return fmt::format("random tokens, seed {}", spec_.seed);
    case data_spec::source::files:
      break;
  }
  const auto files = file_.files == 1 ? "" : fmt::format(" in {} files", file_.files);
  const auto entropy =
      file_.text ? fmt::format("; byte entropy {:.4f} nats", unigram_entropy(file_.tokens)) : "";
  return fmt::format("{}: {} tokens{}{}", spec_.path, file_.tokens.size(), files, entropy);
}

void set_batch(engine& e, const dataset& data, std::uint64_t first) {
  const description& about = e.about();
  const auto seq = static_cast<std::size_t>(about.seq), rows = static_cast<std::size_t>(about.rows);
  std::vector<std::int32_t> tokens(rows * seq), targets(rows * seq);
  std::uint64_t s = first;
  for (int microbatch = 0; microbatch < about.microbatches; ++microbatch)
    for (int dp = 0; dp < about.dp; ++dp) {
      for (std::size_t row = 0; row < rows; ++row, ++s)
        data.sample(s, tokens.data() + row * seq, targets.data() + row * seq);
      e.set_batch(dp, microbatch, tokens.data(), targets.data());
    }
}

}  // namespace rankc::runtime
