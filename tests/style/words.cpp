// SPDX-License-Identifier: Apache-2.0
#include "words.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

namespace rankc::style {
namespace {

constexpr std::size_t most_words = 38;

using words = std::vector<std::string>;

struct phrase {
  std::string_view said, better;
};

// In a phrase `a|b` is one of these words.
constexpr std::array<phrase, 25> phrases{{
    {"let|lets|letting go", "free"},
    {"deal|deals|dealing|dealt out", "reduce-scatter"},
    {"share|shares|shared|sharing out", "shard"},
    {"hand|hands|handed|handing on", "send"},
    {"its like", "the variant"},
    {"so many", "the number, or its symbol"},
    {"in line", "contiguous"},
    {"of its own", "own"},
    {"get|gets on", "make progress"},
    {"go|goes along", "is sent with"},
    {"eight bits", "fp8"},
    {"take|takes turns", "alternate"},
    {"beside", "while, concurrently with, next to"},
    {"there and back", "V-shaped"},
    {"has none", "say what is missing"},
    {"none is|are known", "unknown"},
    {"as it|they is|are|was|were said|told", "as specified"},
    {"meetings", "barriers"},
    {"meeting of the ranks", "barrier"},
    {"passes over memory", "memory-bound kernels"},
    {"its whole", "the complete"},
    {"is|are|was|were said", "is specified"},
    {"is|are|was|were told", "gets"},
    {"is|are|was|were asked", "the subject that asks"},
    {"is|are|was|were spoken|heard|likened", "the subject that speaks"},
}};

constexpr std::array<std::string_view, 13> first_words{
    "what",     "of",      "those",   "which",     "whose",     "none",   "nor",
    "for what", "by what", "in what", "with what", "from what", "to what"};

bool is_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '\'';
}

// Replaces code between backticks and quotations by one word.
std::string without_quotations(std::string_view text) {
  std::string plain;
  char closes = 0;
  for (const char c : text) {
    if (closes == 0 && (c == '`' || c == '"')) {
      closes = c;
      plain += 'x';
    } else if (c == closes) {
      closes = 0;
    } else if (closes == 0) {
      plain += c;
    }
  }
  return plain;
}

words words_of(std::string_view text) {
  words all;
  bool within = false;
  for (const char c : text) {
    if (is_letter(c)) {
      if (!within) all.emplace_back();
      all.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    within = is_letter(c);
  }
  return all;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(at, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool is_one_of(std::string_view word, std::string_view choice) {
  const std::vector<std::string_view> choices = split(choice, '|');
  return std::find(choices.begin(), choices.end(), word) != choices.end();
}

// True if the words begin with the phrase.
bool begin_with(std::span<const std::string> said, std::string_view phrase) {
  const std::vector<std::string_view> wanted = split(phrase, ' ');
  return said.size() >= wanted.size() &&
         std::equal(wanted.begin(), wanted.end(), said.begin(),
                    [](auto choice, auto& word) { return is_one_of(word, choice); });
}

bool has(const words& said, std::string_view phrase) {
  for (std::size_t i = 0; i < said.size(); ++i)
    if (begin_with(std::span(said).subspan(i), phrase)) return true;
  return false;
}

// A sentence ends with a mark before a space.
std::size_t longest_sentence(std::string_view text) {
  std::size_t most = 0, count = 0;
  for (const std::string_view word : split(text, ' ')) {
    if (word.empty()) continue;
    most = std::max(most, ++count);
    if (std::string_view(".!?:;").find(word.back()) != std::string_view::npos) count = 0;
  }
  return most;
}

}  // namespace

std::vector<std::string> habits(std::string_view text) {
  const std::string plain = without_quotations(text);
  const words said = words_of(plain);
  std::vector<std::string> found;
  for (const std::string_view first : first_words)
    if (begin_with(said, first) && !plain.ends_with('?'))
      found.push_back("begins with '" + std::string(first) + "': begin with the subject");
  for (const phrase& one : phrases)
    if (has(said, one.said)) found.push_back("'" + std::string(one.said) + "': " + std::string(one.better));
  if (const std::size_t count = longest_sentence(plain); count > most_words)
    found.push_back("a sentence of " + std::to_string(count) + " words: at most " +
                    std::to_string(most_words));
  return found;
}

}  // namespace rankc::style
