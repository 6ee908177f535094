// SPDX-License-Identifier: Apache-2.0
// Text that can be written while compiling: sentences of diagnostics, made with the numbers filled in.
#pragma once
#include <concepts>
#include <string_view>
#include <vector>

namespace rankc {

/// What names layers, parameters and dims: it stands in generated text, messages and checkpoints.
constexpr bool is_name(std::string_view s) {
  for (char c : s)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.'))
      return false;
  return !s.empty();
}
inline constexpr std::string_view legal_names = "a name has letters, digits, '_', '-' and '.'";

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
