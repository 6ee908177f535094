// SPDX-License-Identifier: Apache-2.0
// Accesses sorted by their first byte, to find overlaps in logarithmic time.
#pragma once
#include <rankc/codegen/program.hpp>

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <vector>

namespace rankc::codegen {

/// Sorted accesses, without repetitions of the same bytes and value.
class sorted_accesses {
 public:
  /// The accesses must outlive this.
  explicit sorted_accesses(const std::vector<access>& all) {
    sorted_.reserve(all.size());
    for (const access& a : all) sorted_.push_back({&a, 0});
    const auto key = [](const entry& e) { return std::tuple(e.at->begin, e.at->end, e.at->value); };
    std::sort(sorted_.begin(), sorted_.end(),
              [&](const entry& x, const entry& y) { return key(x) < key(y); });
    const auto repeated = std::unique(sorted_.begin(), sorted_.end(),
                                      [&](const entry& x, const entry& y) { return key(x) == key(y); });
    sorted_.erase(repeated, sorted_.end());
    std::size_t end = 0;
    for (entry& e : sorted_) e.furthest = end = std::max(end, e.at->end);
  }

  /// An access that overlaps `a` and is not `allowed`; null if there is none. The time is logarithmic in the
  /// number of accesses if no two of them overlap.
  template <class Allowed>
  const access* find_overlap(const access& a, Allowed allowed) const {
    auto behind = std::partition_point(sorted_.begin(), sorted_.end(),
                                       [&](const entry& e) { return e.at->begin < a.end; });
    while (behind != sorted_.begin() && (--behind)->furthest > a.begin)
      if (behind->at->end > a.begin && !allowed(*behind->at)) return behind->at;
    return nullptr;
  }

 private:
  struct entry {
    const access* at;
    std::size_t furthest;  // the largest end of this access and those before it
  };
  std::vector<entry> sorted_;
};

}  // namespace rankc::codegen
