// SPDX-License-Identifier: Apache-2.0
#include "field.hpp"

#include <bit>
#include <cmath>

namespace rankc::codegen::algebra {

word field::product(word x, word y) const {
  __extension__ using wide = unsigned __int128;
  return static_cast<word>(static_cast<wide>(x) * y % prime);
}

word field::power(word x, word exponent) const {
  word all = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) all = product(all, x);
    x = product(x, x);
  }
  return all;
}

word field::number(double value) const {
  int exponent = 0;
  const auto mantissa = static_cast<std::int64_t>(std::ldexp(std::frexp(value, &exponent), 53));
  exponent -= 53;
  const word half = (prime + 1) / 2;
  const word scale =
      exponent < 0 ? power(half, static_cast<word>(-exponent)) : power(2, static_cast<word>(exponent));
  const word size = product(static_cast<word>(mantissa < 0 ? -mantissa : mantissa), scale);
  return mantissa < 0 ? difference(0, size) : size;
}

namespace {

/// A sequence of pseudorandom numbers from a seed.
/// Source: Steele, Lea and Flood 2014 (SplitMix64).
class sequence {
 public:
  explicit sequence(word seed) : state_(seed) {}
  word next() { return field::mixed(state_ += 0x9E3779B97F4A7C15ull); }

 private:
  word state_;
};

/// Whether one of x, x^2, x^4, ..., x^(2^(twos - 1)) is -1.
bool reaches_minus_one(const field& modulo, word x, int twos) {
  for (int k = 0; k < twos; ++k) {
    if (x == modulo.prime - 1) return true;
    x = modulo.product(x, x);
  }
  return false;
}

/// Whether an odd number of 62 bits is prime.
/// Source: Miller 1976 and Rabin 1980; these bases suffice below 3.3e24 (Sorenson and Webster 2015).
bool is_prime(word n) {
  constexpr word bases[]{2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
  const field modulo{n, 0};
  const int twos = std::countr_zero(n - 1);
  for (const word base : bases) {
    const word x = modulo.power(base, (n - 1) >> twos);
    if (x != 1 && !reaches_minus_one(modulo, x, twos)) return false;
  }
  return true;
}

/// Whether some 2^k with 0 < k <= 4096 is 1 modulo a prime.
bool has_small_order_of_two(word prime) {
  const field modulo{prime, 0};
  word power = 1;
  for (int k = 1; k <= 4096; ++k) {
    power = modulo.sum(power, power);
    if (power == 1) return true;
  }
  return false;
}

word draw_prime(sequence& from) {
  for (;;) {
    const word candidate = word{1} << 61 | from.next() >> 3 | 1;
    if (is_prime(candidate) && !has_small_order_of_two(candidate)) return candidate;
  }
}

}  // namespace

fields draw_fields(word seed) {
  sequence from(seed);
  fields all{{draw_prime(from), from.next()}, {draw_prime(from), from.next()}};
  while (all.b.prime == all.a.prime) all.b.prime = draw_prime(from);
  return all;
}

}  // namespace rankc::codegen::algebra
