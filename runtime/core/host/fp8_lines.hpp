// SPDX-License-Identifier: Apache-2.0
// Rounding to fp8 and back, for numbers that share a scale: a whole tensor, a row or a column.
#pragma once
#include <rankc/contract/fp8.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace rankc::runtime::host {

/// Rounds `count` numbers, `apart` elements from each other, by the scale of the largest. Returns the
/// dequantization factor.
template <class F, class T>
float round_line(F* to, const T* from, std::size_t count, std::size_t apart, float (*scale_of)(float)) {
  T largest = 0;
  for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(from[i * apart]));
  const float scale = scale_of(static_cast<float>(largest));
  for (std::size_t i = 0; i < count; ++i)
    to[i] = runtime::to_fp8<F>(static_cast<float>(from[i * apart]) * scale);
  return 1 / scale;
}

/// Widens lines of fp8 numbers. The result is contiguous, in memory of the thread. It is valid until the next
/// call with the same template arguments.
template <class F, class T, int Which>
const T* lines_as_numbers(const F* from, const float* factors, std::size_t lines, std::size_t count) {
  thread_local std::vector<T> all;
  if (all.size() < lines * count) all.resize(lines * count);
  for (std::size_t line = 0, i = 0; line < lines; ++line)
    for (const auto factor = static_cast<T>(factors[line]); i < (line + 1) * count; ++i)
      all[i] = runtime::from_fp8<T>(from[i]) * factor;
  return all.data();
}

}  // namespace rankc::runtime::host
