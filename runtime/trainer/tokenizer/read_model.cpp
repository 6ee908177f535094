// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>
#include <utility>

#include "byte_letters.hpp"
#include "tokenizer_fields.hpp"

namespace rankc::runtime {
namespace {

constexpr int bytes = 256;

/// The bytes of a token. A token that is not written in byte letters stands for its own text.
std::string bytes_of_token(const std::string& token) { return bytes_of_letters(token).value_or(token); }

void read_vocabulary(const json_place& place, vocabulary& to) {
  if (!place.value().is_object() || place.value().empty()) place.refuse("an object of tokens and their ids");
  for (const auto& [token, id] : place.value().items()) {
    const auto number = value_as<std::int32_t>(id);
    if (!number || *number < 0 || *number >= vocabulary::most)
      place.at(token).refuse(fmt::format("a whole number from 0 to {}", vocabulary::most - 1));
    if (to.has(*number)) place.at(token).refuse("an id that no other token has");
    to.set(*number, token, bytes_of_token(token));
  }
}

/// The two tokens of "a b" or ["a", "b"].
std::pair<std::string, std::string> tokens_of(const json_place& merge) {
  constexpr const char* expected = R"("a b" or ["a", "b"])";
  if (const auto pair = value_as<std::vector<std::string>>(merge.value())) {
    if (pair->size() != 2) merge.refuse(expected);
    return {pair->front(), pair->back()};
  }
  const auto text = value_as<std::string>(merge.value());
  const std::size_t blank = text ? text->find(' ') : std::string::npos;
  if (blank == std::string::npos || text->find(' ', blank + 1) != std::string::npos) merge.refuse(expected);
  return {text->substr(0, blank), text->substr(blank + 1)};
}

void read_merges(const json_place& place, const vocabulary& tokens, pair_table<merge_rule>& to) {
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < place.size(); ++i) {
    const json_place merge = place.at(i);
    const bool is_header = merge.value().is_string() && merge.as<std::string>().starts_with("#version");
    if (is_header) continue;
    const auto [left, right] = tokens_of(merge);
    const std::int32_t a = tokens.id_of(left), b = tokens.id_of(right), both = tokens.id_of(left + right);
    if (a < 0 || b < 0 || both < 0) merge.refuse("two tokens that the vocabulary has, as it has their pair");
    to.set(static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), {rank++, both});
  }
}

/// The tokens of a byte: the token of its letter, or with `falls_back` one per byte of the letter's UTF-8,
/// such as <0xC4>.
std::vector<std::int32_t> initial_tokens(int byte, const vocabulary& tokens, bool falls_back) {
  const std::string& letter = letter_of_byte(static_cast<unsigned char>(byte));
  if (const std::int32_t id = tokens.id_of(letter); id >= 0) return {id};
  std::vector<std::int32_t> ids;
  for (const char c : letter) {
    const std::int32_t id = tokens.id_of(fmt::format("<0x{:02X}>", static_cast<unsigned char>(c)));
    if (!falls_back || id < 0) return {};
    ids.push_back(id);
  }
  return ids;
}

/// Refuses a text that changes how words are written as tokens.
void refuse_text(const json_place& place) {
  if (!place.is_null() && place.value() != "") place.refuse("null or an empty text");
}

}  // namespace

void read_model(const json_place& model, tokenizer_parts& to) {
  model.allow_keys({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                    "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (!model.at("type").is_null() && model.at("type").value() != "BPE") model.at("type").refuse("\"BPE\"");
  if (model.at("dropout").as_or(0.0) != 0) model.at("dropout").refuse("null or 0");
  refuse_text(model.at("continuing_subword_prefix"));
  refuse_text(model.at("end_of_word_suffix"));
  read_vocabulary(model.at("vocab"), to.tokens);
  read_merges(model.at("merges"), to.tokens, to.rules.merges);
  const bool falls_back = model.at("byte_fallback").as_or(false);
  for (int byte = 0; byte < bytes; ++byte)
    to.rules.initial[static_cast<std::size_t>(byte)] = initial_tokens(byte, to.tokens, falls_back);
  if (!model.at("ignore_merges").as_or(false)) return;
  for (const auto& [token, id] : model.at("vocab").value().items())
    if (const auto word = bytes_of_letters(token)) to.rules.whole[*word] = id.get<std::int32_t>();
}

}  // namespace rankc::runtime
