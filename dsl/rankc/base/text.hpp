// SPDX-License-Identifier: Apache-2.0
// Text that is composed at compile time: the sentences of diagnostics, with the numbers filled in.
#pragma once
#include <rankc/base/decimal.hpp>

#include <concepts>
#include <limits>
#include <string_view>
#include <vector>

namespace rankc {

/// True if s is a legal name of a layer, parameter or dim. It appears in generated text, messages and
/// checkpoints.
constexpr bool is_name(std::string_view s) {
  for (char c : s)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
          c == '-' || c == '.'))
      return false;
  return !s.empty();
}
inline constexpr std::string_view legal_names = "a name has letters, digits, '_', '-' and '.'";

/// True if s is a legal name of a value, which is an identifier in generated text.
constexpr bool is_identifier(std::string_view s) {
  for (char c : s)
    if (c == '-' || c == '.') return false;
  return is_name(s) && (s[0] < '0' || s[0] > '9');
}

/// A sentence under construction. It is not a std::string because clang cannot evaluate that of libstdc++ 12
/// at compile time.
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
  /// Appends a number as people write it, 3e-4, 0.95, 1000, -inf or nan, with the fewest digits that are
  /// exact.
  constexpr sentence& operator<<(double x) {
    if (x != x) return *this << "nan";
    if (std::bit_cast<std::uint64_t>(x) >> 63) return *this << "-" << -x;
    if (x == 0) return *this << "0";
    if (x > std::numeric_limits<double>::max()) return *this << "inf";
    const detail::decimal d = detail::shortest(x);
    const std::string_view digits{d.digits, static_cast<std::size_t>(d.count)};
    if (d.exponent < -1 || d.exponent > 7) {
      *this << digits.substr(0, 1);
      if (d.count > 1) *this << "." << digits.substr(1);
      return *this << "e" << d.exponent - 1;
    }
    if (d.exponent <= 0)
      return *this << std::string_view("0.0", static_cast<std::size_t>(2 - d.exponent)) << digits;
    const auto before = static_cast<std::size_t>(d.exponent);
    if (digits.size() > before) return *this << digits.substr(0, before) << "." << digits.substr(before);
    return *this << digits << std::string_view("0000000", before - digits.size());
  }
  constexpr std::string_view view() const { return {text_.data(), text_.size()}; }
  constexpr bool empty() const { return text_.empty(); }

 private:
  std::vector<char> text_;
};

/// The separator before entry `i` of `n` in "a, b and c".
constexpr std::string_view list_separator(int i, int n) {
  if (i == 0) return "";
  return i == n - 1 ? " and " : ", ";
}

/// A string literal as a template argument.
template <std::size_t N>
struct literal {
  char text[N];
  constexpr literal(const char (&from)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = from[i];
  }
};

}  // namespace rankc
