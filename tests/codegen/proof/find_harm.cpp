// SPDX-License-Identifier: Apache-2.0
#include "find_harm.hpp"

#include "execution_model.hpp"

#include <algorithm>

namespace rankc::codegen::testing {

/// Delaying one op shows most pairs of unordered accesses. Small programs get more interleavings, for pairs
/// that show only if a third op comes between.
std::string find_harm(const program& p, unsigned seed, int most_late) {
  execution_model model(p);
  for (unsigned k = 0; k < 16; ++k)
    if (auto harm = model.run({seed + k, k / 4 % 2 == 1}); !harm.empty()) return harm;
  const std::int64_t size = model.size(), all = std::max<std::int64_t>(size, 300),
                     count = std::min<std::int64_t>(all, most_late);
  for (std::int64_t k = 0; k < count; ++k) {
    const int late = static_cast<int>((seed + k * all / count) % size);
    if (auto harm = model.run({seed + static_cast<unsigned>(k), true, late}); !harm.empty()) return harm;
  }
  return {};
}

}  // namespace rankc::codegen::testing
