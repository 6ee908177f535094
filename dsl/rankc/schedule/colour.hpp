// SPDX-License-Identifier: Apache-2.0
// Interval colouring: uses at different times share buffers of equal size.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace rankc {

/// A use of a buffer, from before action `first` until after action `last`. `*slot` receives the buffer's
/// index.
struct buffer_use {
  int first, last;
  int* slot;
};

/// Assigns a slot to every use, the one that has been free longest. Returns the number of slots, which is the
/// largest number of concurrent uses.
constexpr int colour(std::vector<buffer_use>& uses) {
  std::sort(uses.begin(), uses.end(), [](const buffer_use& a, const buffer_use& b) {
    return a.first != b.first ? a.first < b.first : a.last < b.last;
  });
  // last use of each slot: a heap with the use that ends first in front
  std::vector<const buffer_use*> latest;
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
