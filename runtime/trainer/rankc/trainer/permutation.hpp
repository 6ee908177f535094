// SPDX-License-Identifier: Apache-2.0
// A random permutation whose elements are computed independently, so it needs no memory and no state.
#pragma once
#include <rankc/runtime/random_bits.hpp>

#include <bit>
#include <cstdint>

namespace rankc::runtime {

/// Element `i` of the permutation of 0 .. n - 1 for a seed and an epoch: a Feistel network of six rounds over
/// the next even power of two, repeated while the result is n or more.
/// Source: Luby and Rackoff 1988; cycle-walking: Black and Rogaway 2002; the rounds are Philox4x32-10.
inline std::uint64_t permuted(std::uint64_t i, std::uint64_t n, std::uint64_t seed, std::uint64_t epoch) {
  const int half = (std::bit_width(n - 1) + 1) / 2;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  do {
    std::uint64_t left = i >> half, right = i & mask;
    for (std::uint32_t round = 0; round < 6; ++round) {
      const random_words drawn =
          philox({{static_cast<std::uint32_t>(right), round, static_cast<std::uint32_t>(epoch),
                   static_cast<std::uint32_t>(epoch >> 32)}},
                 static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
      const std::uint64_t mixed = left ^ (drawn.word[0] & mask);
      left = right;
      right = mixed;
    }
    i = left << half | right;
  } while (i >= n);
  return i;
}

}  // namespace rankc::runtime
