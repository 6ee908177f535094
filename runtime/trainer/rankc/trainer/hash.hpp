// SPDX-License-Identifier: Apache-2.0
// Numbers from hashes. Initial weights and synthetic tokens are functions of a seed and an index, so every
// parallel layout and the PyTorch baseline start from the same values without communication.
#pragma once
#include <rankc/runtime/fnv1a.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rankc::runtime {

/// The output of SplitMix64 for state `x`.
/// Source: Steele, Lea, Flood 2014.
constexpr std::uint64_t splitmix64(std::uint64_t x) {
  std::uint64_t z = x + 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

/// Fills elements [first, first + count) of the unsharded, row-major tensor `name` from uniform(-a, a), a =
/// std sqrt(3). Each value is the float32 product k * float32(a 2^-24), k = 2 (z >> 40) + 1 - 2^24, z =
/// splitmix64((fnv1a64(name) ^ seed) + index); k is odd and exact in float32.
void hash_uniform(std::string_view name, double std, std::uint64_t seed, std::size_t first, std::size_t count,
                  double* to);

}  // namespace rankc::runtime
