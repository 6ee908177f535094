// SPDX-License-Identifier: Apache-2.0
// FILE.mask next to FILE.bin: this header, then one byte for each token of FILE.bin.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace rankc::runtime {

/// All numbers are little endian.
struct token_mask_header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t packed;  // the length of the sequences that examples are packed into; 0: not packed
  std::uint64_t tokens;
};
static_assert(sizeof(token_mask_header) == 24);

inline constexpr std::array<char, 8> token_mask_magic{'R', 'A', 'N', 'K', 'C', 'M', 'S', 'K'};
inline constexpr std::uint32_t token_mask_version = 1;

/// 1: the token is a label when the model predicts it. 0: the loss ignores it.
inline constexpr char label_counts = 1, label_is_ignored = 0;

}  // namespace rankc::runtime
