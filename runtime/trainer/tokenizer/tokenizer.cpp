// SPDX-License-Identifier: Apache-2.0
#include "tokenizer.hpp"

#include <algorithm>
#include <rankc/runtime/failure.hpp>
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
      text, [&](std::string_view piece) { encode_piece(piece, to); },
      [&](std::int32_t id) { to.push_back(id); });
}

void tokenizer::encode(std::string_view text, std::vector<std::int32_t>& to, std::vector<std::size_t>& ends) {
  std::size_t at = 0;
  const auto add_ends = [&](std::size_t most) {
    for (std::size_t i = ends.size(); i < to.size(); ++i) {
      at = std::min(at + bytes_of(to[i]).size(), most);
      ends.push_back(at);
    }
  };
  const auto move_to = [&](std::size_t place) {
    if (!ends.empty()) ends.back() = place;
    at = place;
  };
  raw_.split(
      text,
      [&](std::string_view piece) {
        const auto begin = static_cast<std::size_t>(piece.data() - text.data());
        move_to(begin);
        encode_piece(piece, to);
        refuse_other_bytes(piece, std::span(to).subspan(ends.size()));
        add_ends(begin + piece.size());
        move_to(begin + piece.size());
      },
      [&](std::int32_t id) {
        to.push_back(id);
        add_ends(text.size());
      });
  move_to(text.size());
}

/// Errors: failure (1) if the tokens of a piece have other bytes than the piece.
void tokenizer::refuse_other_bytes(std::string_view piece, std::span<const std::int32_t> tokens) const {
  std::size_t bytes = 0;
  for (const std::int32_t token : tokens) bytes += bytes_of(token).size();
  if (bytes != (normalizes_ ? normal_form_c(piece).size() : piece.size()))
    throw failure(
        1,
        "RC6705: the tokenizer adds text or removes it (add_prefix_space, Removed, lstrip or rstrip), so the "
        "tokens of a part of a text depend on the rest; --chat needs a tokenizer that keeps the text");
}

void tokenizer::encode_piece(std::string_view text, std::vector<std::int32_t>& to) {
  if (normalizes_) encode_normalized(normal_form_c(text), to);
  else encode_normalized(text, to);
}

void tokenizer::encode_normalized(std::string_view text, std::vector<std::int32_t>& to) {
  const pre_tokenizer::visitor add_word = [&](std::string_view word) { model_.encode(word, to); };
  normalized_.split(
      text, [&](std::string_view piece) { words_.for_each_word(piece, add_word); },
      [&](std::int32_t id) { to.push_back(id); });
}

}  // namespace rankc::runtime
