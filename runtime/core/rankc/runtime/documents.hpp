// SPDX-License-Identifier: Apache-2.0
// The positions at which the documents of sequences begin.
#pragma once
#include <cstdint>

namespace rankc::runtime {

/// Finds, for each token, the position in its sequence at which its document begins. The end-of-document
/// token belongs to the document that it ends. A document that began before the sequence begins at position
/// 0.
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
