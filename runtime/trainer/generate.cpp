// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/generate.hpp>

#include "row_logits.hpp"
#include <rankc/runtime/failure.hpp>
#include <rankc/launch/say_error.hpp>
#include <rankc/runtime/printable.hpp>
#include <rankc/runtime/random_bits.hpp>
#include <rankc/trainer/beginning.hpp>
#include <rankc/trainer/checkpoint.hpp>
#include <rankc/trainer/mapped_file.hpp>
#include <rankc/trainer/prompt_text.hpp>
#include <rankc/runtime/parse.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>

#include "chat/chat_form.hpp"
#include "hugging_face_origin.hpp"

namespace rankc::runtime {
namespace {

/// A number in [0, 1).
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
                    printable(word), vocab - 1);
    ids.push_back(*id);
    begin = end;
  }
  if (ids.empty())
    throw failure(
        1, "RC6067: {} holds no tokens; write them as numbers with spaces, commas or lines between them",
        file);
  return ids;
}

/// The Hugging Face folder that a checkpoint's run began with; empty if there was none. `notes` gets a
/// sentence if the folder is gone. Faults of the checkpoint are reported when it is loaded.
std::optional<std::filesystem::path> origin_of(const description& about, const std::string& load,
                                               std::vector<std::string>& notes) try {
  return find_origin(about, find_checkpoint(load), "");
} catch (const failure& reason) {
  constexpr int folder_is_gone = 6522;
  if (reason.id == folder_is_gone)
    notes.push_back(
        say("RC6072: text is read and printed as bytes, because {}, with which the run began, does not exist "
            "here; give --tokenizer",
            reason.arguments.front()));
  return std::nullopt;
}

/// The tokens of a prompt, the tokens that end the generated text, and the text of each token.
struct conversation {
  std::vector<std::int32_t> opening, prompt;  // the opening is not printed
  std::function<std::string(std::int32_t)> printed;
  std::vector<std::int32_t> ends{};
};

conversation begin_conversation(const description& about, const options& o) {
  if (!o.prompt_tokens.empty())
    return {{}, read_ids(o.prompt_tokens, about.vocab_used), [](std::int32_t token) {
              return fmt::format("{} ", token);
            }};
  std::vector<std::string> notes;
  const auto origin = o.tokenizer.empty() ? origin_of(about, o.load, notes) : std::nullopt;
  const auto text = std::make_shared<prompt_text>(about, o.tokenizer, origin, notes);
  if (!o.chat.empty() && o.tokenizer.empty() && text->is_of_bytes())
    notes.push_back(
        say("RC6292: the template {} and its special tokens are written as bytes; give --tokenizer FILE, or "
            "--tokenizer bytes for a model that was trained on bytes",
            o.chat));
  for (const std::string& note : notes) say_error("{}: note: {}\n", about.name, printable(note));
  const auto printed = [text](std::int32_t token) { return text->text_of(token); };
  if (o.chat.empty()) return {text->opening(), text->tokens_of(o.prompt.value_or("\n")), printed};
  const chat_form& form = chat_form_of(o.chat);
  return {{}, text->tokens_of_chat(form, o.prompt.value(), o.date), printed, text->ends_of(form)};
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
  tokens = tokens.last(std::min(tokens.size(), static_cast<std::size_t>(e.about().seq)));
  set_sequences(e, std::array{std::vector<std::int32_t>(tokens.begin(), tokens.end())});
  e.evaluate();
  return logits_at(e, 0, 0, static_cast<int>(tokens.size()) - 1);
}

void generate(const description& about, const install_engine& install, const options& o) {
  refuse_one_rank(o, "generate");
  layout_with_logits(about);
  const conversation text = begin_conversation(about, o);
  console silent(false, false);
  const beginning b = begin_run(about, o, silent);
  const auto e = install();
  set_weights(*e, b, o, silent);
  const sampling how{o.temperature, o.top_k, o.sampling_seed};
  std::vector<std::int32_t> tokens = text.opening;
  for (const std::int32_t token : text.prompt) {
    tokens.push_back(token);
    print_result(text.printed(token));
  }
  const std::size_t given = tokens.size();
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < o.tokens; ++i) {
    tokens.push_back(choose_token(next_logits(*e, tokens), how, tokens.size()));
    print_result(text.printed(tokens.back()));
    const bool ends_turn = std::find(text.ends.begin(), text.ends.end(), tokens.back()) != text.ends.end();
    if (ends_turn || tokens.back() == about.end_of_document) break;
  }
  print_result("\n");
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto made = static_cast<double>(tokens.size() - given);
  say_error(
      "{}: {} tokens in {:.1f} s, {:.1f} a second; each took a forward of {} sequences of {} tokens, because "
      "a training program keeps no cache of keys and values\n",
      about.name, made, seconds, made / seconds, about.global_batch(), about.seq);
}

}  // namespace rankc::runtime
