// SPDX-License-Identifier: Apache-2.0
#include "lexer.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

namespace rankc::style {
namespace {

// Longer marks come first: the first that fits is taken.
constexpr std::array<std::string_view, 27> marks{"<<<", "<<=", ">>=", "<=>", "...", "->*", "::", "->", "++",
                                                 "--",  "+=",  "-=",  "*=",  "/=",  "%=",  "&=", "|=", "^=",
                                                 "==",  "!=",  "<=",  ">=",  "&&",  "||",  "<<", ".*", "##"};
constexpr std::array<std::string_view, 5> raw_prefixes{"R", "LR", "uR", "UR", "u8R"};

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || c == '_' || byte >= 0x80;
}

class lexer {
 public:
  explicit lexer(std::string_view text) : text_(text) {}

  lexed run() {
    split_lines();
    while (at_ < text_.size()) step();
    return std::move(out_);
  }

 private:
  void split_lines() {
    for (std::size_t begin = 0; begin < text_.size();) {
      const std::size_t end = std::min(text_.find('\n', begin), text_.size());
      out_.lines.push_back(text_.substr(begin, end - begin));
      begin = end + 1;
    }
    out_.raw.assign(out_.lines.size(), false);
  }

  void step() {
    const char c = peek();
    if (c == '\n') {
      in_directive_ = false;
      line_is_blank_ = true;
      skip(1);
    } else if (rest().starts_with("\\\n")) {
      skip(2);
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      skip(1);
    } else if (rest().starts_with("//")) {
      skip(rest().find('\n'));
    } else if (rest().starts_with("/*")) {
      skip_past("*/", 2);
    } else {
      if (c == '#' && line_is_blank_) in_directive_ = true;
      line_is_blank_ = false;
      take();
    }
  }

  void take() {
    const std::size_t begin = at_;
    const int line = line_;
    const token_kind kind = skip_token();
    if (!in_directive_) out_.tokens.push_back({kind, text_.substr(begin, at_ - begin), line});
  }

  token_kind skip_token() {
    const char c = peek();
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return skip_number();
    if (c == '"' || c == '\'') return skip_literal();
    if (is_word(c)) return skip_word();
    const auto mark =
        std::find_if(marks.begin(), marks.end(), [&](auto one) { return rest().starts_with(one); });
    skip(mark == marks.end() ? 1 : mark->size());
    return token_kind::mark;
  }

  token_kind skip_number() {
    while (is_word(peek()) || peek() == '.' || peek() == '\'') {
      const bool exponent = std::string_view("eEpP").find(peek()) != std::string_view::npos;
      skip(1);
      if (exponent && (peek() == '+' || peek() == '-')) skip(1);
    }
    return token_kind::number;
  }

  // An apostrophe in the text of #error opens a literal that ends with its line.
  token_kind skip_literal() {
    const char quote = peek();
    skip(1);
    while (peek() != quote && peek() != '\n' && at_ < text_.size()) skip(peek() == '\\' ? 2 : 1);
    if (peek() == quote) skip(1);
    return token_kind::literal;
  }

  token_kind skip_word() {
    const std::size_t begin = at_;
    while (is_word(peek())) skip(1);
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (peek() != '"' || std::find(raw_prefixes.begin(), raw_prefixes.end(), word) == raw_prefixes.end())
      return token_kind::word;
    skip_raw_string();
    return token_kind::literal;
  }

  void skip_raw_string() {
    const int first = line_;
    const std::string_view opening = rest().substr(0, rest().find('('));
    const std::string closing = ")" + std::string(opening.substr(1)) + "\"";
    skip_past(closing, opening.size() + 1);
    std::fill(out_.raw.begin() + first - 1, out_.raw.begin() + line_, true);
  }

  std::string_view rest() const { return text_.substr(at_); }
  char peek(std::size_t offset = 0) const { return at_ + offset < text_.size() ? text_[at_ + offset] : '\0'; }
  void skip(std::size_t length) {
    const std::string_view skipped = rest().substr(0, length);
    line_ += static_cast<int>(std::count(skipped.begin(), skipped.end(), '\n'));
    at_ += skipped.size();
  }
  void skip_past(std::string_view end, std::size_t from) {
    const std::size_t found = rest().find(end, from);
    skip(found == std::string_view::npos ? found : found + end.size());
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_is_blank_ = true;
  bool in_directive_ = false;
  lexed out_;
};

}  // namespace

lexed lex(std::string_view text) { return lexer(text).run(); }

}  // namespace rankc::style
