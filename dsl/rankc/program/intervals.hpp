// SPDX-License-Identifier: Apache-2.0
// Interval placement: give buffers that live at different times the same memory.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace rankc::program {

/// Every buffer starts at a multiple of this.
inline constexpr std::size_t alignment = 256;
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

/// Something that must keep its bytes from time `first` to time `last`, both included.
struct lifetime {
  int first, last;
  std::size_t bytes;
  std::size_t offset = 0;
};

/// Give each lifetime an offset such that those which meet in time do not overlap; first fit, in the order given.
/// Returns the bytes needed.
constexpr std::size_t place_intervals(std::vector<lifetime>& all) {
  std::size_t peak = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<const lifetime*> rivals;
    for (std::size_t j = 0; j < i; ++j)
      if (all[j].first <= all[i].last && all[i].first <= all[j].last) rivals.push_back(&all[j]);
    std::sort(rivals.begin(), rivals.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
    std::size_t at = 0;
    for (const lifetime* r : rivals)
      if (at + all[i].bytes > r->offset) at = std::max(at, r->offset + aligned(r->bytes));
    all[i].offset = at;
    peak = std::max(peak, at + aligned(all[i].bytes));
  }
  return peak;
}

}  // namespace rankc::program
