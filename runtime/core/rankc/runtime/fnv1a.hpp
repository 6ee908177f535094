// SPDX-License-Identifier: Apache-2.0
// The hash of a parameter's name. Its initial values and its rounding bits are derived from this hash.
#pragma once
#include <cstdint>
#include <string_view>

namespace rankc::runtime {

/// FNV-1a, 64 bit.
/// Source: Fowler, Noll, Vo.
constexpr std::uint64_t fnv1a64(std::string_view text) {
  std::uint64_t h = 0xCBF29CE484222325;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return h;
}

}  // namespace rankc::runtime
