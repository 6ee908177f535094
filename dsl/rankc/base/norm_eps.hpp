// SPDX-License-Identifier: Apache-2.0
// What norms add to the variance or the mean square of a row, so that a row of zeros is divided by a number
// above 0.
#pragma once
#include <limits>

namespace rankc {

inline constexpr double default_norm_eps = 1e-5, smallest_norm_eps = 1.2e-38;

/// Whether it is above 0 and finite in f32, in which GPUs add it.
constexpr bool is_norm_eps(double eps) {
  return eps >= smallest_norm_eps && eps <= std::numeric_limits<float>::max();
}

}  // namespace rankc
