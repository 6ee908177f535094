// SPDX-License-Identifier: Apache-2.0
// `rankc tokens`: a token file of llm.c from text.
#pragma once
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

namespace rankc::tool {

struct tokens_options {
  std::filesystem::path out{};
  std::vector<std::filesystem::path> files{};
  std::filesystem::path model{};  // tokenizer.json, SentencePiece or a folder of one; empty: bytes
  bool ends = false;              // the model's end-of-sentence behind each text
  bool begins = false;            // its begin-of-sentence before each text
  std::string field{};            // of JSON lines, each a text; empty: a file is a text
};

/// Write the tokens of files, one after the other: uint16 where the vocabulary fits into it, else uint32.
/// Errors: one sentence, and what was there before stays: 2 where the output is an input or holds something
/// else; 1 where a file or the model cannot be read, or this build lacks a library that they need.
int tokens(const tokens_options&, std::ostream& out, std::ostream& errors);

}  // namespace rankc::tool
