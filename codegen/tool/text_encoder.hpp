// SPDX-License-Identifier: Apache-2.0
// The tokens of texts: their bytes, or by a tokenizer.json or a model of SentencePiece.
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace rankc::tool {

/// `begin` and `end` are put around each text. `encode` counts in `replaced` the sequences of bytes that are
/// not UTF-8 and become U+FFFD. `encode_with_ends` is for valid UTF-8; `ends` gets for each token the byte of
/// the text behind it. `id_of` is -1 for a text that is not one token. A model that does not keep the text
/// puts a space before it or replaces white space.
struct text_encoder {
  std::function<std::vector<int>(std::string text, std::size_t& replaced)> encode;
  std::function<void(const std::string& text, std::vector<int>& ids, std::vector<std::size_t>& ends)>
      encode_with_ends;
  std::function<int(const std::string& token)> id_of;
  bool keeps_text = true;
  std::string name;
  int vocab = 0;
  std::vector<int> begin, end;
};

/// The encoder of a model: the file, or the tokenizer.json or else the tokenizer.model of a folder. An empty
/// path stands for bytes.
/// Errors: failure (1) where the file cannot be read or is neither, or this build lacks the library that it
/// needs.
text_encoder encoder_of(const std::filesystem::path& model);

}  // namespace rankc::tool
