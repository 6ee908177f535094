// SPDX-License-Identifier: Apache-2.0
#include "tokenizer.hpp"

#include <utility>

#include "normal_form.hpp"

namespace rankc::runtime {

tokenizer::tokenizer(tokenizer_parts parts)
    : tokens_(std::move(parts.tokens)),
      model_(std::move(parts.rules)),
      words_(std::move(parts.words)),
      raw_(std::move(parts.raw)),
      normalized_(std::move(parts.normalized)),
      normalizes_(parts.normalizes),
      begin_(std::move(parts.begin)),
      end_(std::move(parts.end)),
      opening_(std::move(parts.opening)) {}

void tokenizer::encode(std::string_view text, std::vector<std::int32_t>& to) {
  raw_.split(
      text,
      [&](std::string_view piece) {
        if (normalizes_) encode_normalized(normal_form_c(piece), to);
        else encode_normalized(piece, to);
      },
      [&](std::int32_t id) { to.push_back(id); });
}

void tokenizer::encode_normalized(std::string_view text, std::vector<std::int32_t>& to) {
  const pre_tokenizer::visitor add_word = [&](std::string_view word) { model_.encode(word, to); };
  normalized_.split(
      text, [&](std::string_view piece) { words_.for_each_word(piece, add_word); },
      [&](std::int32_t id) { to.push_back(id); });
}

}  // namespace rankc::runtime
