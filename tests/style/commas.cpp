// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#include "rules.hpp"

namespace rankc::style {
namespace {

// The tokens of a statement. A bracket pair is represented by its opening bracket.
using statement = std::span<const std::size_t>;

class reader {
 public:
  explicit reader(const code& source) : source_(source) {}

  std::vector<finding> run() {
    read_block(0, source_.size());
    for (std::size_t i = 0; i < source_.size(); ++i)
      if (source_.is(i, "{") && source_.is_block(i)) read_block(i + 1, source_.partner(i));
    return found_;
  }

 private:
  void read_block(std::size_t begin, std::size_t end) {
    std::vector<std::size_t> tokens;
    for (std::size_t i = begin; i < end; i = source_.after(i)) {
      const bool complete = source_.is(i, ";");
      if (complete) read_statement(tokens);
      else tokens.push_back(i);
      if (complete || ends_statement(tokens)) tokens.clear();
    }
  }

  // True for the block of a function, a loop or a branch, and false for the block of a lambda or a class.
  bool ends_statement(statement tokens) const {
    const std::size_t brace = tokens.back();
    if (!source_.is(brace, "{") || defines_class(tokens) || is_lambda(tokens)) return false;
    if (source_.is_block(brace)) return true;
    const bool is_empty = source_.partner(brace) == brace + 1;
    return is_empty &&
           (tokens.size() == 1 ||
            source_.is_one_of(brace - 1, {")", "}", "const", "noexcept", "override", "final", "else", "do"}));
  }

  bool defines_class(statement tokens) const {
    return std::any_of(tokens.begin(), tokens.end(), [&](std::size_t i) {
      return source_.is_one_of(i, {"struct", "class", "union", "enum"});
    });
  }

  bool is_lambda(statement tokens) const {
    for (std::size_t i = tokens.size() - 1; i-- > 0;) {
      if (source_.is(tokens[i], "{")) return false;
      if (source_.is_capture(tokens[i])) return true;
    }
    return false;
  }

  void read_statement(statement tokens) {
    const auto comma =
        std::find_if(tokens.begin(), tokens.end(), [&](std::size_t i) { return source_.is_comma(i); });
    if (comma == tokens.end()) return;
    const statement rest = without_header(tokens);
    if (!rest.empty() && !is_declaration(rest))
      found_.push_back({source_[*comma].line, "a comma between statements"});
  }

  // Removes `else`, `if (...)`, `case ...:`, labels, attributes, and macros called before a declaration.
  statement without_header(statement tokens) const {
    while (!tokens.empty()) {
      const std::size_t length = header_length(tokens);
      if (length == 0) break;
      tokens = tokens.subspan(std::min(length, tokens.size()));
    }
    return tokens;
  }

  std::size_t header_length(statement tokens) const {
    if (is_one_of(tokens, 0, {"else", "do"})) return 1;
    if (is_one_of(tokens, 0, {"if", "for", "while", "switch"})) return length_up_to("(", tokens);
    if (is_one_of(tokens, 0, {"case", "default", "public", "private", "protected"}))
      return length_up_to(":", tokens);
    const bool attribute = is_one_of(tokens, 0, {"["}) && source_.is(tokens[0] + 1, "[");
    if (attribute) return 1;
    const bool label = is_word(tokens, 0) && is_one_of(tokens, 1, {":"});
    const bool macro = is_word(tokens, 0) && is_one_of(tokens, 1, {"("}) && is_word(tokens, 2);
    return label || (macro && !is_one_of(tokens, 0, {"decltype"})) ? 2 : 0;
  }

  std::size_t length_up_to(std::string_view text, statement tokens) const {
    const auto found =
        std::find_if(tokens.begin(), tokens.end(), [&](std::size_t i) { return source_.is(i, text); });
    return static_cast<std::size_t>(found - tokens.begin()) + 1;
  }

  bool is_declaration(statement tokens) const {
    if (is_one_of(tokens, 0, {"return", "co_return", "co_yield", "co_await", "throw"})) return false;
    if (is_one_of(tokens, 0, {"delete", "new", "not", "sizeof"})) return false;
    if (is_one_of(tokens, 0, {"struct", "class", "union", "enum", "extern", "decltype"})) return true;
    return begins_with_type_and_name(tokens);
  }

  bool begins_with_type_and_name(statement tokens) const {
    std::size_t i = is_one_of(tokens, 0, {"::"}) ? 1 : 0;
    if (!is_word(tokens, i)) return false;
    ++i;
    while (is_one_of(tokens, i, {"::", "<"})) i += length_of_name_part(tokens, i);
    while (is_one_of(tokens, i, {"*", "&", "&&", "const", "volatile", "..."})) ++i;
    return is_word(tokens, i) || is_function_pointer(tokens, i);
  }

  // `<arguments>`, `::name` or `::template name`
  std::size_t length_of_name_part(statement tokens, std::size_t at) const {
    if (is_one_of(tokens, at, {"<"})) return 1;
    return is_one_of(tokens, at + 1, {"template"}) ? 3 : 2;
  }

  // `(*name)(parameters)`
  bool is_function_pointer(statement tokens, std::size_t at) const {
    return is_one_of(tokens, at, {"("}) && source_.is(tokens[at] + 1, "*") &&
           is_one_of(tokens, at + 1, {"("});
  }

  bool is_one_of(statement tokens, std::size_t at, std::initializer_list<std::string_view> texts) const {
    return at < tokens.size() && source_.is_one_of(tokens[at], texts);
  }
  bool is_word(statement tokens, std::size_t at) const {
    return at < tokens.size() && source_.is_word(tokens[at]);
  }

  const code& source_;
  std::vector<finding> found_;
};

}  // namespace

std::vector<finding> comma_statements(const code& source) { return reader(source).run(); }

}  // namespace rankc::style
