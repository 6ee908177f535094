// SPDX-License-Identifier: Apache-2.0
// Column sums over tokens for gradient kernels. They are in f64 for every element type and need no scratch
// memory.
#pragma once
#include <algorithm>

namespace rankc::runtime::host {

/// out[c] = or += sum over n of term(n, c), for n = first, first + step, ... below tokens. Columns are
/// processed in blocks whose sums are on the stack.
/// Shapes: out (width).
template <class T, class Term>
void column_sums(T* out, int first, int tokens, int step, int width, bool accumulate, Term term) {
  constexpr int block = 128;
  for (int begin = 0; begin < width; begin += block) {
    const int columns = std::min(block, width - begin);
    double sums[block] = {};
    for (int n = first; n < tokens; n += step) {
#pragma omp simd
      for (int c = 0; c < columns; ++c) sums[c] += static_cast<double>(term(n, begin + c));
    }
    for (int c = 0; c < columns; ++c) {
      const double before = accumulate ? static_cast<double>(out[begin + c]) : 0.0;
      out[begin + c] = static_cast<T>(before + sums[c]);
    }
  }
}

}  // namespace rankc::runtime::host
