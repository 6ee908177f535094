// SPDX-License-Identifier: Apache-2.0
// A regular expression of PCRE2, compiled to machine code if the processor supports it.
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

  /// Compiles an expression of PCRE2 (expression.hpp).
  /// Errors: std::invalid_argument with the reason; also for an expression that can match an empty text.
  explicit pattern(const std::string& expression);
  ~pattern();
  pattern(pattern&&) noexcept;
  pattern& operator=(pattern&&) noexcept;

  /// Finds the first match at or after `from` in valid UTF-8.
  /// Returns: false if there is no match.
  /// Errors: failure (1) if the search takes too many steps.
  bool find(std::string_view text, std::size_t from, match& found) const;

 private:
  struct compiled;
  std::unique_ptr<compiled> of_;
};

}  // namespace rankc::runtime
