// SPDX-License-Identifier: Apache-2.0
// The eps that norms add to the variance or the mean square of a row, so that a row of zeros is not divided
// by 0.
#pragma once
#include <limits>

namespace rankc {

inline constexpr double default_norm_eps = 1e-5, smallest_norm_eps = 1.2e-38;

/// True if eps is normal, above 0 and finite in f32, the type in which GPUs add it.
constexpr bool is_norm_eps(double eps) {
  return eps >= smallest_norm_eps && eps <= std::numeric_limits<float>::max();
}

}  // namespace rankc
