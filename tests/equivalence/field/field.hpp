// SPDX-License-Identifier: Apache-2.0
// Numbers modulo the prime 2^61 - 1, in which sums and products are exact, and draws from a key that stand
// for functions that are no polynomials. Two polynomials that differ agree at a random point with probability
// degree / p.
// Source: Schwartz 1980; Zippel 1979.
#pragma once
#include <rankc/runtime/rope_scaling.hpp>

#include "keys.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

namespace field {

/// 0 to prime - 1.
using element = std::uint64_t;
inline constexpr element prime = (element{1} << 61) - 1;

constexpr element add(element a, element b) {
  const element sum = a + b;
  return sum >= prime ? sum - prime : sum;
}
constexpr element negate(element a) { return a == 0 ? 0 : prime - a; }
constexpr element multiply(element a, element b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return add(static_cast<element>(product) & prime, static_cast<element>(product >> 61));
}
/// 0 for 0.
constexpr element inverse(element a) {
  element power = 1;
  for (element left = prime - 2; left; left >>= 1, a = multiply(a, a))
    if (left & 1) power = multiply(power, a);
  return power;
}

/// The larger by an order in which no number is a bound of all.
constexpr element larger(element a, element b) {
  return mix(key_of("order"), a) < mix(key_of("order"), b) ? b : a;
}

/// What a key stands for.
constexpr element draw(std::uint64_t key) { return mix(key, 0) % prime; }
constexpr element draw_nonzero(std::uint64_t key) { return 1 + mix(key, 1) % (prime - 1); }
constexpr element draw_below(std::uint64_t key, std::uint64_t count) { return mix(key, 0) % count; }

/// A double as the fraction that it is: m 2^e, and 2^61 is 1. Not finite: drawn.
inline element number(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const int exponent = static_cast<int>(bits >> 52 & 0x7FF);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  if (exponent == 0x7FF) return draw(bits);
  const element m = exponent ? fraction | std::uint64_t{1} << 52 : fraction;
  const int shift = ((exponent ? exponent : 1) - 1075 + 61 * 20) % 61;
  const element magnitude = multiply(m, element{1} << shift);
  return bits >> 63 ? negate(magnitude) : magnitude;
}

/// The cosine, or sine, of a position and a pair of a head's dims.
constexpr element rotary_number(std::int64_t position, std::int64_t pair, std::int64_t dim, double theta,
                                const rankc::rope_scaling& s, bool sine) {
  std::uint64_t key = mix(mix(key_of("rotary"), theta), static_cast<std::uint64_t>(dim));
  for (const double number : {static_cast<double>(s.by), s.factor, s.low_freq_factor, s.high_freq_factor})
    key = mix(key, number);
  key = mix(key, static_cast<std::uint64_t>(s.original_positions));
  key = mix(mix(key, static_cast<std::uint64_t>(position)), static_cast<std::uint64_t>(pair));
  return draw(mix(key, std::uint64_t{sine}));
}

/// Exact, at every scale.
constexpr bool differ(element a, element b, element) { return a != b; }
inline element largest(const std::vector<element>&) { return 0; }

}  // namespace field
