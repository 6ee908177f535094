// SPDX-License-Identifier: Apache-2.0
// Text that can be written while compiling: sentences of diagnostics, made with the numbers filled in.
#pragma once
#include <concepts>
#include <string_view>
#include <vector>

namespace rankc {

/// A sentence under construction. (Not std::string: clang cannot evaluate libstdc++ 12's at compile time.)
class sentence {
 public:
  constexpr sentence& operator<<(std::string_view s) {
    text_.insert(text_.end(), s.begin(), s.end());
    return *this;
  }
  constexpr sentence& operator<<(std::integral auto n) {
    if (n < 0) text_.push_back('-');
    char digits[20]{};
    int k = 0;
    auto rest = n < 0 ? 0ull - static_cast<unsigned long long>(n) : static_cast<unsigned long long>(n);
    do digits[k++] = static_cast<char>('0' + rest % 10);
    while (rest /= 10);
    while (k) text_.push_back(digits[--k]);
    return *this;
  }
  constexpr std::string_view view() const { return {text_.data(), text_.size()}; }
  constexpr bool empty() const { return text_.empty(); }

 private:
  std::vector<char> text_;
};

}  // namespace rankc
