// SPDX-License-Identifier: Apache-2.0
// Tokens with paired brackets, including the < > of template arguments and the <<< >>> of a kernel launch.
#pragma once
#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "lexer.hpp"

namespace rankc::style {

inline constexpr std::size_t no_token = static_cast<std::size_t>(-1);

/// Errors: std::invalid_argument if ( ) [ ] { } are not balanced.
class code {
 public:
  explicit code(std::vector<token> tokens);

  std::size_t size() const { return tokens_.size(); }
  /// Past either end the token is an empty mark.
  const token& operator[](std::size_t index) const;
  bool is(std::size_t index, std::string_view text) const { return (*this)[index].text == text; }
  bool is_one_of(std::size_t index, std::initializer_list<std::string_view> texts) const;
  bool is_word(std::size_t index) const { return (*this)[index].kind == token_kind::word; }

  bool opens(std::size_t index) const;
  bool closes(std::size_t index) const;
  /// The bracket paired with this one; no_token for other tokens.
  std::size_t partner(std::size_t index) const { return partner_[index]; }
  /// The token after this one, or after the bracket pair that this one opens.
  std::size_t after(std::size_t index) const { return opens(index) ? partner_[index] + 1 : index + 1; }

  /// True if a comma separates; in `operator,` it is a name.
  bool is_comma(std::size_t index) const { return is(index, ",") && !is(index - 1, "operator"); }
  /// True if a { holds statements or declarations, not initializers. An empty one does not count.
  bool is_block(std::size_t index) const;
  /// True if a [ begins a lambda.
  bool is_capture(std::size_t index) const;

 private:
  void pair(std::size_t open, std::size_t close);
  void pair_balanced();
  void pair_templates();
  bool may_open_arguments(std::size_t index) const;
  std::size_t end_of_arguments(std::size_t open) const;
  std::size_t end_of_launch(std::size_t open) const;

  std::vector<token> tokens_;
  std::vector<std::size_t> partner_;
};

}  // namespace rankc::style
