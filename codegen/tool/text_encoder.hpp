// SPDX-License-Identifier: Apache-2.0
// Encodes texts as tokens: as bytes, or by a tokenizer.json or a SentencePiece model.
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace rankc::tool {

/// `begin` and `end` are tokens around each text. `encode` counts in `replaced` the byte sequences that are
/// not UTF-8 and become U+FFFD. `encode_with_ends` takes valid UTF-8; `ends` gets the byte of the text at
/// which each token ends. `id_of` is -1 for a text that is not one token. A model without `keeps_text` puts a
/// space before the text or replaces white space.
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
/// path means bytes.
/// Errors: failure (1) if the file cannot be read or is neither, or if this build lacks the library that it
/// needs.
text_encoder encoder_of(const std::filesystem::path& model);

}  // namespace rankc::tool
