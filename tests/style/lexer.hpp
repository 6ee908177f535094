// SPDX-License-Identifier: Apache-2.0
// Splits a C++ or CUDA source into lines and tokens. Comments and preprocessor directives are not tokens.
#pragma once
#include <string_view>
#include <vector>

namespace rankc::style {

/// A literal is a string or a character, with its quotes. A mark is an operator, a bracket or punctuation.
enum class token_kind { word, number, literal, mark };

struct token {
  token_kind kind;
  std::string_view text;
  int line;
};

struct lexed {
  std::vector<std::string_view> lines;
  std::vector<bool> raw;  ///< For each line, whether a part of a raw string literal stands on it.
  std::vector<token> tokens;
};

/// Lexes a source that compiles. Every view is into `text`. Each `>` is one token, so `>>` is two and `>>>`
/// is three.
lexed lex(std::string_view text);

}  // namespace rankc::style
