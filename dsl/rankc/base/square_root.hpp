// SPDX-License-Identifier: Apache-2.0
// Square roots at compile time, where std::sqrt is not constexpr.
#pragma once

namespace rankc {

/// The square root of x by Newton's iteration, correct to the last bit but one. x must be above 0.
constexpr double square_root(double x) {
  double root = x;
  for (int i = 0; i < 64; ++i) root = 0.5 * (root + x / root);
  return root;
}

}  // namespace rankc
