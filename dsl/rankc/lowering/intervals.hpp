// SPDX-License-Identifier: Apache-2.0
// Interval placement: buffers that are live at different times may share memory.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace rankc::lowering {

/// Alignment of every buffer. Units: bytes.
inline constexpr std::size_t alignment = 256;
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

/// A buffer that is live from time `first` to time `last`, both included.
struct lifetime {
  int first, last;
  std::size_t bytes;
  std::size_t offset = 0;
};

/// Assigns offsets so that buffers that are live at the same time do not overlap: first fit, in the given
/// order. Returns the bytes needed.
constexpr std::size_t place_intervals(auto& all) {
  std::size_t peak = 0;
  std::vector<const lifetime*> placed;  // sorted by offset
  placed.reserve(all.size());
  for (auto& x : all) {
    std::size_t at = 0;
    for (const lifetime* r : placed)
      if (r->first <= x.last && x.first <= r->last && at + x.bytes > r->offset)
        at = std::max(at, r->offset + aligned(r->bytes));
    x.offset = at;
    peak = std::max(peak, at + aligned(x.bytes));
    std::size_t place = placed.size();
    while (place > 0 && placed[place - 1]->offset > at) --place;
    placed.insert(placed.begin() + static_cast<std::ptrdiff_t>(place), &x);
  }
  return peak;
}

}  // namespace rankc::lowering
