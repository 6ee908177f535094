// SPDX-License-Identifier: Apache-2.0
// Interval colouring: equal buffers shared by uses at different times.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace rankc {

/// A buffer's use, from before action `first` until after action `last`; `*slot` becomes which buffer it is.
struct buffer_use {
  int first, last;
  int* slot;
};

/// Give every use the slot that has been free longest, which takes as few as are ever in use at once; return
/// how many.
constexpr int colour(std::vector<buffer_use>& uses) {
  std::sort(uses.begin(), uses.end(), [](const buffer_use& a, const buffer_use& b) {
    return a.first != b.first ? a.first < b.first : a.last < b.last;
  });
  std::vector<const buffer_use*> latest;  // of each slot, a heap with the use that ends first in front
  const auto ends_later = [](const buffer_use* a, const buffer_use* b) { return a->last > b->last; };
  for (const buffer_use& u : uses) {
    if (latest.empty() || latest.front()->last >= u.first) {
      *u.slot = static_cast<int>(latest.size());
      latest.push_back(&u);
    } else {
      *u.slot = *latest.front()->slot;
      std::pop_heap(latest.begin(), latest.end(), ends_later);
      latest.back() = &u;
    }
    std::push_heap(latest.begin(), latest.end(), ends_later);
  }
  return static_cast<int>(latest.size());
}

}  // namespace rankc
