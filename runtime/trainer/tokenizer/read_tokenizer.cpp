// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "normal_form.hpp"
#include "tokenizer_fields.hpp"

namespace rankc::runtime {
namespace {

// The limits exceed every published tokenizer.json.
constexpr json_limits file_limits{std::size_t{1} << 28, std::size_t{1} << 24, 0};

void read_added_token(const json_place& place, std::int32_t next, tokenizer_parts& to) {
  place.allow_keys({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  const added_token token{.id = place.at("id").as<std::int32_t>(),
                          .content = place.at("content").as<std::string>(),
                          .single_word = place.at("single_word").as_or(false),
                          .strips_left = place.at("lstrip").as_or(false),
                          .strips_right = place.at("rstrip").as_or(false)};
  if (token.content.empty()) place.at("content").refuse("a text that is not empty");
  const std::int32_t known = to.tokens.id_of(token.content), expected = known < 0 ? next : known;
  if (token.id != expected || token.id >= vocabulary::most)
    place.at("id").refuse(fmt::format("{}, its id in the vocabulary or the next free one", expected));
  to.tokens.set(token.id, token.content, token.content);
  const bool special = place.at("special").as_or(false);
  if (place.at("normalized").as_or(!special)) to.normalized.push_back(token);
  else to.raw.push_back(token);
}

void read_added_tokens(const json_place& all, tokenizer_parts& to) {
  if (all.is_null()) return;
  for (std::size_t i = 0; i < all.size(); ++i) read_added_token(all.at(i), to.tokens.size(), to);
}

/// True if the text is normalized to NFC.
bool read_normalizer(const json_place& place) {
  if (place.is_null()) return false;
  if (place.at("type").value() == "NFC") return true;
  if (place.at("type").value() != "Sequence") place.at("type").refuse("NFC, Sequence or no normalizer");
  const json_place all = place.at("normalizers");
  bool normalizes = false;
  for (std::size_t i = 0; i < all.size(); ++i) normalizes = read_normalizer(all.at(i)) || normalizes;
  return normalizes;
}

void check_decoder(const json_place& place) {
  if (place.is_null() || place.at("type").value() == "ByteLevel") return;
  if (place.at("type").value() != "Sequence") place.at("type").refuse("ByteLevel");
  const json_place all = place.at("decoders");
  for (std::size_t i = 0; i < all.size(); ++i) check_decoder(all.at(i));
}

void refuse_set(const json_place& place) {
  if (!place.is_null()) place.refuse("null");
}

}  // namespace

std::filesystem::path tokenizer_file(const std::filesystem::path& file_or_folder) {
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(file_or_folder, error);
  return is_folder ? file_or_folder / "tokenizer.json" : file_or_folder;
}

tokenizer read_tokenizer(const std::filesystem::path& file_or_folder) {
  const std::filesystem::path file = tokenizer_file(file_or_folder);
  const auto root = read_json<nlohmann::json>(file, 1, file_limits);
  const std::string name = file.string();
  const json_place all(name, root);
  all.allow_keys({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                  "post_processor", "decoder", "model"});
  refuse_set(all.at("truncation"));
  refuse_set(all.at("padding"));
  tokenizer_parts parts;
  read_model(all.at("model"), parts);
  parts.words = read_pre_tokenizer(all.at("pre_tokenizer"));
  check_decoder(all.at("decoder"));
  read_added_tokens(all.at("added_tokens"), parts);
  parts.normalizes = read_normalizer(all.at("normalizer"));
  if (parts.normalizes)
    for (added_token& token : parts.normalized) token.content = normal_form_c(token.content);
  read_ends(all.at("post_processor"), file, parts);
  return tokenizer(std::move(parts));
}

}  // namespace rankc::runtime
