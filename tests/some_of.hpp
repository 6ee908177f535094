// SPDX-License-Identifier: Apache-2.0
// Tests of many faults or plans run a third of them, and all if RANKC_EVERY_MUTANT is set, as in `long`.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <utility>
#include <vector>

namespace rankc::test {

inline bool plants_all() {
  static const bool is_every = std::getenv("RANKC_EVERY_MUTANT") != nullptr;
  return is_every;
}

/// A third of many, or all of them.
inline int some_of(int all) { return plants_all() ? all : (all + 2) / 3; }

/// Whether the n-th of many is taken.
inline bool takes(std::size_t n) { return plants_all() || n % 3 == 0; }

/// Every third element from element `first` (0, 1 or 2) on, or all of them.
template <class T>
std::vector<T> some_of(std::vector<T> all, std::size_t first = 0) {
  std::vector<T> some;
  for (std::size_t n = 0; n < all.size(); ++n)
    if (takes(n + 3 - first)) some.push_back(std::move(all[n]));
  return some;
}

}  // namespace rankc::test
