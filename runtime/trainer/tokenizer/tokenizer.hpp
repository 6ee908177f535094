// SPDX-License-Identifier: Apache-2.0
// The tokenizer of a tokenizer.json: byte-level BPE, as in GPT-2, Llama 3, Qwen, gpt-oss and DeepSeek.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "added_tokens.hpp"
#include "byte_pairs.hpp"
#include "pre_tokenizer.hpp"
#include "vocabulary.hpp"

namespace rankc::runtime {

/// The parts of a tokenizer. `raw` tokens are searched in the text, `normalized` tokens in its normal form.
struct tokenizer_parts {
  vocabulary tokens;
  byte_pair_rules rules;
  pre_tokenizer words;
  std::vector<added_token> raw, normalized;
  bool normalizes = false;               // to NFC
  std::vector<std::int32_t> begin, end;  // around a text
  std::vector<std::int32_t> opening;     // the tokens of `begin` that every text gets
};

class tokenizer {
 public:
  explicit tokenizer(tokenizer_parts parts);

  /// Appends the tokens of a text in valid UTF-8, without the tokens that begin and end a text. A special
  /// token that the text spells out becomes that token.
  /// Errors: failure (1) for a byte that the vocabulary lacks, and for a pattern that needs too many steps.
  void encode(std::string_view text, std::vector<std::int32_t>& to);

  /// The same for an empty `to`. `ends` gets, for each token, the offset of the text's byte after it. Inside
  /// a piece of text that NFC changes, the offset is exact up to the first change.
  /// Errors: as above, and failure (1) for a tokenizer that adds to the text or removes from it.
  void encode(std::string_view text, std::vector<std::int32_t>& to, std::vector<std::size_t>& ends);

  /// The bytes of a token, which may be a part of a code point. Empty for an id without a token.
  std::string_view bytes_of(std::int32_t id) const { return tokens_.bytes_of(id); }
  /// The id of a token; `vocabulary::none` if there is none.
  std::int32_t id_of(std::string_view token) const { return tokens_.id_of(token); }
  /// The largest id plus one.
  std::int32_t size() const { return tokens_.size(); }
  /// The tokens that begin and end a text.
  const std::vector<std::int32_t>& begin() const { return begin_; }
  const std::vector<std::int32_t>& end() const { return end_; }
  /// The tokens that post_processor puts before every text.
  const std::vector<std::int32_t>& opening() const { return opening_; }

 private:
  void encode_piece(std::string_view text, std::vector<std::int32_t>& to);
  void refuse_other_bytes(std::string_view piece, std::span<const std::int32_t> tokens) const;
  void encode_normalized(std::string_view text, std::vector<std::int32_t>& to);

  vocabulary tokens_;
  byte_pairs model_;
  pre_tokenizer words_;
  added_tokens raw_, normalized_;
  bool normalizes_;
  std::vector<std::int32_t> begin_, end_, opening_;
};

/// The file itself, or the tokenizer.json in a folder.
std::filesystem::path tokenizer_file(const std::filesystem::path& file_or_folder);

/// Reads a tokenizer.json, or the one in a folder. Tokens that begin and end a text come from its
/// post_processor, else from bos_token and eos_token of the tokenizer_config.json in the same folder.
/// Errors: failure (1) that names the file and the field, for a tokenizer that is not byte-level BPE or is
/// not valid.
tokenizer read_tokenizer(const std::filesystem::path& file_or_folder);

}  // namespace rankc::runtime
