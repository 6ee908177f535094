// SPDX-License-Identifier: Apache-2.0
// Time limits, for machines that are slower than the one that the limits were chosen on.
#pragma once
#include <chrono>
#include <cstdlib>

namespace rankc::test {

/// A limit in seconds times RANKC_TEST_SLOWNESS, if that is set to a number above 0.
inline std::chrono::duration<double> scaled(double seconds) {
  const char* set = std::getenv("RANKC_TEST_SLOWNESS");
  const double slowness = set != nullptr ? std::atof(set) : 1;
  return std::chrono::duration<double>(seconds * (slowness > 0 ? slowness : 1));
}

}  // namespace rankc::test
