// SPDX-License-Identifier: Apache-2.0
// Terms: values as expressions over the model's inputs. A term is identified by a fingerprint, an element of
// each of two prime fields that are drawn when the check begins (`field.hpp`). The fingerprint of a sum is
// the sum of the fingerprints, and that of a multiple is the multiple, so sums have no order. The fingerprint
// of a leaf or of any other op is a hash of its row, its attributes and its operands' fingerprints.
// `chance.hpp` bounds the probability that two different terms have one fingerprint.
#pragma once
#include <bit>
#include <compare>
#include <stdexcept>
#include <string_view>

#include "field.hpp"

namespace rankc::codegen::algebra {

struct term {
  word a = 0, b = 0;
  auto operator<=>(const term&) const = default;
  bool is_zero() const { return a == 0 && b == 0; }
};
inline constexpr term zero{};

inline term operator+(term x, term y) { return {drawn::now().a.sum(x.a, y.a), drawn::now().b.sum(x.b, y.b)}; }
inline term operator-(term x, term y) {
  return {drawn::now().a.difference(x.a, y.a), drawn::now().b.difference(x.b, y.b)};
}
inline term operator*(double number, term x) {
  const fields& in = drawn::now();
  return {in.a.product(in.a.number(number), x.a), in.b.product(in.b.number(number), x.b)};
}

/// The kind of a hash. Hashes of different kinds differ, whatever else goes into them.
enum class hash_of : word {
  leaf,
  result,  // computed by a row
  rotary_table,
  squares,
  updated,
  balanced,
  axis,             // the axis of a sum
  axis_of_operand,  // the axis of an operand that is an incomplete sum
  axes_in_line,     // the joint axis of several sums
  keys,             // the keys of a softmax
  choice_in_groups,
  slots_received,
  slots_gathered,
  slots_of_experts,
  experts,
};

/// Hashes words into a term.
/// Errors: std::logic_error where no fields are drawn.
class hasher {
 public:
  explicit hasher(hash_of kind) {
    if (in_.a.prime == 0) throw std::logic_error("a term is made before its fields are drawn");
    *this << static_cast<word>(kind);
  }
  hasher& operator<<(word x) {
    a_ = in_.a.hashed(a_, x);
    b_ = in_.b.hashed(b_, x);
    return *this;
  }
  hasher& operator<<(term t) { return *this << t.a << t.b; }
  hasher& operator<<(std::string_view text) {
    for (const char c : text) *this << static_cast<word>(static_cast<unsigned char>(c));
    return *this << text.size();
  }
  hasher& operator<<(double number) { return *this << std::bit_cast<word>(number); }
  operator term() const { return {in_.a.element(a_), in_.b.element(b_)}; }

 private:
  const fields& in_ = drawn::now();
  word a_ = 0, b_ = 0;
};

/// An input of the programs and of the model.
inline term leaf(std::string_view kind, std::string_view name) {
  return hasher(hash_of::leaf) << kind << name;
}

/// The number of picks that an expert takes of each group of `tokens` tokens; 0 tokens: no limit.
struct taken_of_group {
  std::int64_t tokens = 0, most = 0;
};

}  // namespace rankc::codegen::algebra
