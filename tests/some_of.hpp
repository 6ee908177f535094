// SPDX-License-Identifier: Apache-2.0
// Tests of many faults or plans take a part of them, and all where RANKC_EVERY_MUTANT is set, as in `long`.
#pragma once
#include <cstddef>
#include <cstdlib>

namespace rankc::test {

inline bool plants_all() {
  static const bool is_every = std::getenv("RANKC_EVERY_MUTANT") != nullptr;
  return is_every;
}

/// A third of many, or all of them.
inline int some_of(int all) { return plants_all() ? all : (all + 2) / 3; }

/// Whether the n-th of many is taken.
inline bool takes(std::size_t n) { return plants_all() || n % 3 == 0; }

}  // namespace rankc::test
