// SPDX-License-Identifier: Apache-2.0
#include "pre_tokenizer.hpp"

#include <string>

#include "expression.hpp"

namespace rankc::runtime {
namespace {

constexpr const char gpt2_expression[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

void split_from(const pre_tokenizer& by, std::size_t first, std::string_view text,
                const pre_tokenizer::visitor& visit);

/// Splits a piece that already has its leading space.
void split_spaced(const pre_tokenizer& by, std::size_t first, std::string_view text,
                  const pre_tokenizer::visitor& visit) {
  if (first == by.splits.size()) return visit(text);
  for_each_piece(by.splits[first], text,
                 [&](std::string_view piece) { split_from(by, first + 1, piece, visit); });
}

void split_from(const pre_tokenizer& by, std::size_t first, std::string_view text,
                const pre_tokenizer::visitor& visit) {
  const bool lacks_space = first == by.space_before && !text.starts_with(' ');
  if (!lacks_space) return split_spaced(by, first, text, visit);
  std::string spaced(" ");
  spaced += text;
  split_spaced(by, first, spaced, visit);
}

}  // namespace

void pre_tokenizer::for_each_word(std::string_view text, const visitor& visit) const {
  if (!text.empty()) split_from(*this, 0, text, visit);
}

split gpt2_split() { return {pattern(pcre2_expression(gpt2_expression)), match_place::isolated}; }

}  // namespace rankc::runtime
