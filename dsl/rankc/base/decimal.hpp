// SPDX-License-Identifier: Apache-2.0
// The shortest decimal form of a double, for sentences that are composed at compile time, where std::to_chars
// is not constexpr.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

namespace rankc::detail {

/// A whole number of any size in limbs of 32 bits, the lowest first, without a zero limb on top.
class whole {
 public:
  constexpr explicit whole(std::uint64_t n) {
    for (; n; n >>= 32) limbs_.push_back(static_cast<std::uint32_t>(n));
  }
  constexpr whole& operator*=(std::uint32_t factor) {
    std::uint64_t carry = 0;
    for (std::uint32_t& limb : limbs_) {
      carry += std::uint64_t{limb} * factor;
      limb = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    if (carry) limbs_.push_back(static_cast<std::uint32_t>(carry));
    return *this;
  }
  constexpr whole& operator<<=(int bits) {
    for (; bits >= 31; bits -= 31) *this *= 1u << 31;
    return *this *= 1u << bits;
  }
  constexpr whole& operator+=(const whole& other) {
    std::uint64_t carry = 0;
    for (std::size_t i = 0; i < limbs_.size() || i < other.limbs_.size() || carry; ++i) {
      if (i == limbs_.size()) limbs_.push_back(0);
      carry += std::uint64_t{limbs_[i]} + (i < other.limbs_.size() ? other.limbs_[i] : 0);
      limbs_[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    return *this;
  }
  /// Subtracts a number that is not larger.
  constexpr whole& operator-=(const whole& other) {
    std::int64_t borrow = 0;
    for (std::size_t i = 0; i < limbs_.size(); ++i) {
      borrow += std::int64_t{limbs_[i]} - (i < other.limbs_.size() ? other.limbs_[i] : 0);
      limbs_[i] = static_cast<std::uint32_t>(borrow);
      borrow >>= 32;
    }
    while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
    return *this;
  }
  /// Negative, 0 or positive if a is less than b, equal to it or greater.
  friend constexpr int compare(const whole& a, const whole& b) {
    if (a.limbs_.size() != b.limbs_.size()) return a.limbs_.size() < b.limbs_.size() ? -1 : 1;
    for (std::size_t i = a.limbs_.size(); i-- > 0;)
      if (a.limbs_[i] != b.limbs_[i]) return a.limbs_[i] < b.limbs_[i] ? -1 : 1;
    return 0;
  }

 private:
  std::vector<std::uint32_t> limbs_;
};

/// 0.d1d2d3... * 10^exponent.
struct decimal {
  char digits[17]{};
  int count = 0, exponent = 0;
};

/// The fewest digits that are nearer to x than to any other double; of several such, those nearest to x. x
/// must be finite and above 0.
/// Source: Steele and White 1990, "How to print floating-point numbers accurately", free-format, in whole
/// numbers.
constexpr decimal shortest(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const int stored = static_cast<int>(bits >> 52);
  const std::uint64_t low = bits & ((1ull << 52) - 1), mantissa = stored ? low | 1ull << 52 : low;
  const int exponent = (stored ? stored : 1) - 1075;  // x = mantissa * 2^exponent
  const bool even = mantissa % 2 == 0, below_is_near = low == 0 && stored > 1;

  // x = rest / unit. Half the distance to the next double above is up / unit, and below down / unit.
  whole rest(mantissa), unit(1), up(1), down(1);
  rest <<= 1 + below_is_near + (exponent > 0 ? exponent : 0);
  unit <<= 1 + below_is_near + (exponent < 0 ? -exponent : 0);
  up <<= below_is_near + (exponent > 0 ? exponent : 0);
  down <<= exponent > 0 ? exponent : 0;
  const auto reaches_unit = [&](std::uint32_t times) {
    whole top = rest;
    top += up;
    const int order = compare(top *= times, unit);
    return even ? order >= 0 : order > 0;
  };
  const auto shift = [&] {
    rest *= 10;
    up *= 10;
    down *= 10;
  };
  decimal out;
  for (; reaches_unit(1); ++out.exponent) unit *= 10;
  for (; !reaches_unit(10); --out.exponent) shift();
  for (;;) {
    shift();
    char digit = '0';
    for (; compare(rest, unit) >= 0; rest -= unit) ++digit;
    const int order = compare(rest, down);
    const bool low_end = even ? order <= 0 : order < 0, high_end = reaches_unit(1);
    if (low_end || high_end) {
      rest <<= 1;
      const int half = compare(rest, unit);
      digit = static_cast<char>(digit + (high_end && (!low_end || half > 0 || (half == 0 && digit % 2))));
    }
    out.digits[out.count++] = digit;
    if (low_end || high_end) return out;
  }
}

}  // namespace rankc::detail
