// SPDX-License-Identifier: Apache-2.0
// Terms: what a value is, as an expression over the model's inputs. A term is known by two elements of the
// field of integers modulo 2^61 - 1. The fingerprint of a sum is the sum of fingerprints and that of a
// multiple the multiple, so that sums have no order; that of any other op is a hash of its row, its
// attributes and its operands' fingerprints. Two terms that differ have one fingerprint with a chance of
// about 2^-120.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace rankc::codegen::algebra {

using word = std::uint64_t;
inline constexpr word prime = (word{1} << 61) - 1;

constexpr word reduced(word x) {
  x = (x & prime) + (x >> 61);
  return x >= prime ? x - prime : x;
}
constexpr word field_product(word x, word y) {
  __extension__ using wide = unsigned __int128;
  const wide z = static_cast<wide>(x) * y;
  return reduced(static_cast<word>(z & prime) + static_cast<word>(z >> 61));
}
/// A finite number as an element of the field: m 2^e, of which 2^61 is 1.
inline word in_field(double number) {
  int exponent = 0;
  const double fraction = std::frexp(number, &exponent);
  const auto mantissa = static_cast<std::int64_t>(std::ldexp(fraction, 53));
  exponent = ((exponent - 53) % 61 + 61) % 61;
  const word size =
      field_product(reduced(static_cast<word>(mantissa < 0 ? -mantissa : mantissa)), word{1} << exponent);
  return mantissa < 0 && size != 0 ? prime - size : size;
}

struct term {
  word a = 0, b = 0;
  bool operator==(const term&) const = default;
  bool is_zero() const { return a == 0 && b == 0; }
};
inline constexpr term zero{};

constexpr term operator+(term x, term y) { return {reduced(x.a + y.a), reduced(x.b + y.b)}; }
constexpr term operator*(word factor, term x) {
  return {field_product(factor, x.a), field_product(factor, x.b)};
}

/// Hashes words into a term.
class hasher {
 public:
  constexpr explicit hasher(word row) { *this << row; }
  constexpr hasher& operator<<(word x) {
    a_ = mixed((a_ ^ x) + 0x9E3779B97F4A7C15ull);
    b_ = mixed((b_ + x) ^ 0xD1B54A32D192ED03ull);
    return *this;
  }
  constexpr hasher& operator<<(term t) { return *this << t.a << t.b; }
  constexpr hasher& operator<<(std::string_view text) {
    for (const char c : text) *this << static_cast<word>(static_cast<unsigned char>(c));
    return *this << text.size();
  }
  hasher& operator<<(double number) { return *this << std::bit_cast<word>(number); }
  constexpr operator term() const {
    return {reduced(mixed(a_ ^ (b_ >> 32))), reduced(mixed(b_ ^ (a_ << 7)))};
  }

 private:
  /// Source: Steele, Lea and Flood 2014 (SplitMix64), its finalizer as improved by D. Stafford.
  static constexpr word mixed(word x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
  }
  word a_ = 0x2545F4914F6CDD1Dull, b_ = 0x6A09E667F3BCC909ull;
};

/// What the programs and the model begin with.
/// How many picks an expert takes of each group of so many tokens; of 0 tokens: all.
struct taken_of_group {
  std::int64_t tokens = 0, most = 0;
};

inline term leaf(std::string_view kind, std::string_view name) { return hasher(0) << kind << name; }

}  // namespace rankc::codegen::algebra
