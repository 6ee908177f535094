// SPDX-License-Identifier: Apache-2.0
// Numbers modulo a prime, in which sums and products are exact. Numbers drawn from a key stand for functions
// that are no polynomials. The prime p = 2^61 - 2373 is the largest below 2^61 for which (p - 1) / 2 is prime
// too, so that only 1 and -1 have a small power that is 1. The checker draws its primes above 2^61. Two
// different polynomials agree at a random point with probability degree / p.
// Source: Schwartz 1980; Zippel 1979.
#pragma once
#include <rankc/contract/rope_scaling.hpp>

#include "keys.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

namespace field {

/// An element of the field: 0 to prime - 1.
using element = std::uint64_t;
inline constexpr element below = 2373, power_of_two = element{1} << 61, prime = power_of_two - below;

constexpr element add(element a, element b) {
  const element sum = a + b;
  return sum >= prime ? sum - prime : sum;
}
constexpr element negate(element a) { return a == 0 ? 0 : prime - a; }
constexpr element multiply(element a, element b) {
  auto product = static_cast<unsigned __int128>(a) * b;
  for (int fold = 0; fold < 2; ++fold)  // 2^61 is 2373 modulo the prime
    product = (product >> 61) * below + (product & (power_of_two - 1));
  return add(static_cast<element>(product), 0);
}
constexpr element power(element a, element exponent) {
  element all = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) all = multiply(all, a);
    a = multiply(a, a);
  }
  return all;
}
/// The inverse; 0 for 0.
constexpr element inverse(element a) { return power(a, prime - 2); }

/// The larger number in a pseudorandom order, in which no number is known to be the largest.
constexpr element larger(element a, element b) {
  return mix(key_of("order"), a) < mix(key_of("order"), b) ? b : a;
}

/// Whether a number is likely drawn, or computed from drawn numbers, rather than a count or an index.
constexpr bool is_drawn(element e) { return e >> 32 != 0; }

/// The pseudorandom element of a key.
constexpr element draw(std::uint64_t key) { return mix(key, 0) % prime; }
constexpr element draw_nonzero(std::uint64_t key) { return 1 + mix(key, 1) % (prime - 1); }
constexpr element draw_below(std::uint64_t key, std::uint64_t count) { return mix(key, 0) % count; }

/// A double as the fraction m 2^e. Infinity and NaN become pseudorandom elements.
inline element number(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const int exponent = static_cast<int>(bits >> 52 & 0x7FF);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  if (exponent == 0x7FF) return draw(bits);
  const element m = exponent ? fraction | std::uint64_t{1} << 52 : fraction;
  const int e = (exponent ? exponent : 1) - 1075;
  const element scale = power(2, static_cast<element>(e < 0 ? -e : e));
  const element magnitude = multiply(m, e < 0 ? inverse(scale) : scale);
  return bits >> 63 ? negate(magnitude) : magnitude;
}

/// The element for the cosine or sine of a position and a pair of a head's dims.
constexpr element rotary_number(std::int64_t position, std::int64_t pair, std::int64_t dim, double theta,
                                const rankc::rope_scaling& s, bool sine) {
  std::uint64_t key = mix(mix(key_of("rotary"), theta), static_cast<std::uint64_t>(dim));
  for (const double number :
       {static_cast<double>(s.by), s.factor, s.low_freq_factor, s.high_freq_factor, s.share})
    key = mix(key, number);
  key = mix(key, static_cast<std::uint64_t>(s.original_positions));
  key = mix(mix(key, static_cast<std::uint64_t>(position)), static_cast<std::uint64_t>(pair));
  return draw(mix(key, std::uint64_t{sine}));
}

/// Whether two elements differ; `scale` does not matter.
constexpr bool differ(element a, element b, element) { return a != b; }
inline element largest(const std::vector<element>&) { return 0; }

}  // namespace field
