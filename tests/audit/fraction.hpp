// SPDX-License-Identifier: Apache-2.0
// Exact fractions, for formulas with divisions, and the formulas as text.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <string_view>

namespace audit {

/// over / under, without a common divisor.
struct fraction {
  std::int64_t over = 0, under = 1;
  fraction(std::int64_t whole = 0) : over(whole) {}
  fraction(std::int64_t o, std::int64_t u) : over(o), under(u) {
    if (const std::int64_t g = std::gcd(over, under) * (under < 0 ? -1 : 1); g != 0) {
      over /= g;
      under /= g;
    }
  }
  bool operator==(const fraction&) const = default;
};
inline fraction operator+(fraction a, fraction b) {
  return {a.over * b.under + b.over * a.under, a.under * b.under};
}
inline fraction operator-(fraction a, fraction b) { return a + fraction(-b.over, b.under); }
inline fraction operator*(fraction a, fraction b) { return {a.over * b.over, a.under * b.under}; }
inline fraction operator/(fraction a, fraction b) { return {a.over * b.under, a.under * b.over}; }

using variables = std::map<std::string, fraction, std::less<>>;

/// The value of a formula such as "2*(t-1)/t*N*h".
/// Errors: std::invalid_argument for an unknown variable or malformed text.
fraction evaluate(std::string_view formula, const variables&);

}  // namespace audit
