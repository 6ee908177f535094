// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/generate.hpp>

#include "row_logits.hpp"
#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/random_bits.hpp>
#include <rankc/trainer/beginning.hpp>
#include <rankc/trainer/mapped_file.hpp>
#include <rankc/runtime/parse.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>

namespace rankc::runtime {
namespace {

/// A number from 0 to below 1.
double uniform(std::uint64_t seed, std::uint64_t position) {
  const random_words w =
      philox({{static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32), 0, 0}},
             static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
  return static_cast<double>((std::uint64_t{w.word[0]} << 32 | w.word[1]) >> 11) * 0x1p-53;
}

std::vector<std::int32_t> read_ids(const std::string& file, int vocab) {
  const mapped_file mapped(file);
  std::vector<std::int32_t> ids;
  const std::string_view text = mapped.bytes(), between = " \t\r\n,";
  for (std::size_t begin = text.find_first_not_of(between); begin != text.npos;
       begin = text.find_first_not_of(between, begin)) {
    const std::size_t end = std::min(text.find_first_of(between, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const auto id = parse_number<std::int32_t>(word);
    if (!id || *id < 0 || *id >= vocab)
      throw failure(1, "RC6066: {} holds '{}', which is not a token of this plan; tokens are 0 to {}", file,
                    word, vocab - 1);
    ids.push_back(*id);
    begin = end;
  }
  if (ids.empty())
    throw failure(
        1, "RC6067: {} holds no tokens; write them as numbers with spaces, commas or lines between them",
        file);
  return ids;
}

std::vector<std::int32_t> prompt_of(const description& about, const options& o) {
  if (!o.prompt_tokens.empty()) return read_ids(o.prompt_tokens, about.vocab_used);
  const std::string text = o.prompt.value_or("\n");
  if (about.vocab_used < 256)
    throw failure(2,
                  "RC6068: --prompt is read as bytes, which are tokens 0 to 255, but this plan's vocabulary "
                  "has {}; give --prompt-tokens FILE",
                  about.vocab_used);
  std::vector<std::int32_t> ids;
  for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

/// Tokens as text where they are bytes, as the prompt was given.
void print(std::int32_t token, const options& o) {
  if (!o.prompt_tokens.empty()) return print_result(fmt::format("{} ", token));
  print_result(token < 256 ? std::string(1, static_cast<char>(token)) : fmt::format("<{}>", token));
}

}  // namespace

int choose_token(std::span<const double> logits, const sampling& how, std::uint64_t position) {
  const auto likeliest = std::max_element(logits.begin(), logits.end());
  if (how.temperature == 0) return static_cast<int>(likeliest - logits.begin());
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });
  if (how.top_k > 0) order.resize(std::min(order.size(), static_cast<std::size_t>(how.top_k)));
  std::vector<double> sums;
  for (double sum = 0; const int token : order)
    sums.push_back(sum += std::exp((logits[static_cast<std::size_t>(token)] - *likeliest) / how.temperature));
  const auto drawn = std::upper_bound(sums.begin(), sums.end(), uniform(how.seed, position) * sums.back());
  return order[static_cast<std::size_t>(
      std::min(drawn - sums.begin(), static_cast<std::ptrdiff_t>(order.size()) - 1))];
}

std::vector<double> next_logits(engine& e, std::span<const std::int32_t> tokens) {
  const description& about = e.about();
  const layout& where = layout_with_logits(about);
  const auto seq = static_cast<std::size_t>(about.seq);
  if (tokens.size() > seq) tokens = tokens.last(seq);
  // Row 0 of the microbatch whose logits are left; what lies after the last token is not seen by it, nor are
  // other rows.
  std::vector<std::int32_t> ids(static_cast<std::size_t>(about.rows) * seq), none(ids.size());
  for (int microbatch = 0; microbatch < about.microbatches; ++microbatch)
    for (int dp = 0; dp < about.dp; ++dp) {
      std::fill(ids.begin(), ids.end(), 0);
      if (microbatch == where.logits.microbatch && dp == 0)
        std::copy(tokens.begin(), tokens.end(), ids.begin());
      e.set_batch(dp, microbatch, ids.data(), none.data());
    }
  e.evaluate();
  return logits_at(e, 0, 0, static_cast<int>(tokens.size()) - 1);
}

void generate(const description& about, const install_engine& install, const options& o) {
  refuse_one_rank(o, "generate");
  layout_with_logits(about);
  std::vector<std::int32_t> tokens = prompt_of(about, o);
  console silent(false, false);
  const beginning b = begin_run(about, o, silent);
  const auto e = install();
  set_weights(*e, b, o, silent);
  const sampling how{o.temperature, o.top_k, o.sampling_seed};
  for (const std::int32_t token : tokens) print(token, o);
  for (std::int64_t i = 0; i < o.tokens; ++i) {
    tokens.push_back(choose_token(next_logits(*e, tokens), how, tokens.size()));
    print(tokens.back(), o);
    if (tokens.back() == about.end_of_document) break;  // the model has ended the text
  }
  print_result("\n");
}

}  // namespace rankc::runtime
