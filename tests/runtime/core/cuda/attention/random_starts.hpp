// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace rankc::runtime::cuda::test {

/// The position at which each token's document begins; documents have 1 to 2 `mean` - 1 tokens.
/// Shapes: (rows, seq).
inline std::vector<std::int32_t> random_starts(int rows, int seq, int mean, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<std::int32_t> starts;
  for (int row = 0; row < rows; ++row)
    for (int begin = 0, end; begin < seq; begin = end) {
      end = std::min(seq, begin + 1 + static_cast<int>(engine() % static_cast<unsigned>(2 * mean - 1)));
      starts.insert(starts.end(), static_cast<std::size_t>(end - begin), begin);
    }
  return starts;
}

}  // namespace rankc::runtime::cuda::test
