// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

namespace rankc {

/// The divisors of n in ascending order. n is at least 1.
constexpr std::vector<int> divisors(int n) {
  std::vector<int> small, large;
  for (int c = 1; c <= n / c; ++c) {
    if (n % c != 0) continue;
    small.push_back(c);
    if (c != n / c) large.push_back(n / c);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

}  // namespace rankc
