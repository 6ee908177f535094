// SPDX-License-Identifier: Apache-2.0
// Sums over tokens, per column, of gradient kernels: in f64 whatever the element type, without scratch
// memory.
#pragma once
#include <algorithm>

namespace rankc::runtime::host {

/// out[c] = or += sum over n of term(n, c), n = first, first + step, ... below tokens.
/// Shapes: out (width). Columns go in blocks whose sums live on the stack.
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
