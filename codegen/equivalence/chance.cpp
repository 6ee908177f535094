// SPDX-License-Identifier: Apache-2.0
#include "chance.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace rankc::codegen::algebra {

namespace {

/// The bits that an op can add to the numerators of a term. A sum adds the bits of its number of summands. A
/// multiple by a double m 2^e also adds the 53 bits of m, and the range of e from -1126 to 971.
double growth(std::string_view row, std::size_t summands) {
  constexpr double of_a_double = 53 + 971 + 1126;
  return std::bit_width(summands) + (row == "scale" ? of_a_double : 0);
}

double bits_of(const program& p) {
  double bits = 0;
  for (const rank_program& r : p.ranks)
    for (const op& o : r.ops) {
      std::size_t summands = o.reads.size();
      if (o.kind == op_kind::collective)
        summands *=
            static_cast<std::size_t>(p.communicators.at(static_cast<std::size_t>(o.communicator)).members());
      bits += growth(o.row, summands);
    }
  return bits;
}

/// The bits of forward, backward, and the sum over the uses of a parameter.
double bits_of(const specification& s) {
  double bits = std::bit_width(s.uses.size());
  for (const specification::use& u : s.uses)
    for (const specification::op& o : s.layers.at(static_cast<std::size_t>(u.layer)).ops)
      bits += 2 * growth(o.row, o.in.size() + 1);
  return bits;
}

}  // namespace

double chance_of_wrong_accept(const program& p, const specification& s, std::size_t known) {
  const double primes = (bits_of(p) + bits_of(s)) / 61;  // that may divide a numerator
  const double one_field = std::ldexp(1, -60) + std::ldexp(primes, -55);
  double terms = 512 * static_cast<double>(known);
  for (const rank_program& r : p.ranks) terms += static_cast<double>(r.ops.size());
  return std::min(1.0, terms * terms * one_field * one_field + std::ldexp(primes, -64));
}

}  // namespace rankc::codegen::algebra
