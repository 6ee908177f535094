// SPDX-License-Identifier: Apache-2.0
// Keys from which numbers are drawn.
#pragma once
#include <bit>
#include <concepts>
#include <cstdint>
#include <string_view>

namespace field {

/// Extend a key by a number; every bit of both counts.
constexpr std::uint64_t mix(std::uint64_t key,
                            std::uint64_t number) {  // the final mix of splitmix64: Steele et al. 2014
  std::uint64_t x = (key ^ number) + 0x9E3779B97F4A7C15ull + (key << 7);
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return x ^ x >> 31;
}
constexpr std::uint64_t mix(std::uint64_t key, std::same_as<double> auto number) {
  return mix(key, std::bit_cast<std::uint64_t>(number));
}
constexpr std::uint64_t key_of(std::string_view text) {
  std::uint64_t key = text.size();
  for (char c : text) key = mix(key, static_cast<unsigned char>(c));
  return key;
}

}  // namespace field
