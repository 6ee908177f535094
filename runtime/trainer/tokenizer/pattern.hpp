// SPDX-License-Identifier: Apache-2.0
// A regular expression of PCRE2, compiled to machine code where the processor allows that.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace rankc::runtime {

class pattern {
 public:
  struct match {
    std::size_t begin, end;
  };

  /// Compile an expression of PCRE2 (expression.hpp).
  /// Errors: std::invalid_argument that gives the reason; also where the expression can match an empty text.
  explicit pattern(const std::string& expression);
  ~pattern();
  pattern(pattern&&) noexcept;
  pattern& operator=(pattern&&) noexcept;

  /// Find the first match that begins at `from` or behind it, in valid UTF-8.
  /// Returns: false where no match exists.
  /// Errors: failure (1) where the search takes too many steps.
  bool find(std::string_view text, std::size_t from, match& found) const;

 private:
  struct compiled;
  std::unique_ptr<compiled> of_;
};

}  // namespace rankc::runtime
