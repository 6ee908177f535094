// SPDX-License-Identifier: Apache-2.0
// Joins the accesses of an op: an op may list the same bytes of one value several times.
#pragma once
#include <rankc/codegen/program.hpp>

#include <algorithm>
#include <tuple>
#include <vector>

namespace rankc::codegen {

/// The accesses, sorted by value and first byte. Overlapping accesses of one value are joined.
inline std::vector<access> joined_accesses(std::vector<access> all) {
  if (all.size() < 2) return all;
  std::sort(all.begin(), all.end(), [](const access& x, const access& y) {
    return std::tie(x.value, x.begin) < std::tie(y.value, y.begin);
  });
  auto last = all.begin();
  for (auto next = last + 1; next != all.end(); ++next)
    if (next->value == last->value && next->begin < last->end) last->end = std::max(last->end, next->end);
    else *++last = *next;
  all.erase(last + 1, all.end());
  return all;
}

}  // namespace rankc::codegen
