// SPDX-License-Identifier: Apache-2.0
// Where the documents of sequences begin.
#pragma once
#include <cstdint>

namespace rankc::runtime {

/// Of each token the position in its sequence that its document begins at: the token that ends a document
/// belongs to it, and one that began before the sequence begins with it.
/// Shapes: tokens, starts (rows, seq).
constexpr void find_starts(const std::int32_t* tokens, int rows, int seq, std::int32_t end_of_document,
                           std::int32_t* starts) {
  for (int row = 0; row < rows; ++row)
    for (int position = 0, start = 0; position < seq; ++position) {
      *starts++ = start;
      if (*tokens++ == end_of_document) start = position + 1;
    }
}

}  // namespace rankc::runtime
