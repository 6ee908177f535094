// SPDX-License-Identifier: Apache-2.0
// `rankc tokens`: a token file of llm.c from texts or conversations, and next to it a mask of its labels and
// their weights.
#pragma once
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

namespace rankc::tool {

struct tokens_options {
  std::filesystem::path out{};
  std::vector<std::filesystem::path> files{};
  std::filesystem::path model{};   // tokenizer.json, SentencePiece or a folder of one; empty: bytes
  bool ends = false;               // the model's end-of-sentence follows each text
  bool begins = false;             // its begin-of-sentence precedes each text
  std::string field{};             // a key of JSON lines, each a text; empty: a file is a text
  std::string weights_field{};     // a key of JSON lines, and of messages: a weight of labels; empty: none
  std::string chat{};              // a chat template: the files are JSON lines of messages; empty: texts
  std::string date{};              // for a template that states one
  std::string loss = "assistant";  // or all: the labels of a conversation
  std::string end_of_document{};   // the token behind each example, as text or number; empty: none
  int pack = 0;                    // the tokens of a sequence; 0: examples follow one another
};

/// Writes the tokens of files, one after the other: as uint16 if the vocabulary fits into it, else as uint32.
/// Conversations and packed examples get a mask: FILE.mask next to FILE.bin. With `weights_field` the tokens
/// get weights: FILE.weights.
/// Errors: one sentence, and an older output stays: 2 if the output is an input or holds something else, and
/// for options that contradict each other; 1 if a file or the model cannot be read, or if this build lacks a
/// library that they need.
int tokens(const tokens_options&, std::ostream& out, std::ostream& errors);

/// The names of chat templates, with commas.
std::string chat_templates();

}  // namespace rankc::tool
