// SPDX-License-Identifier: Apache-2.0
// The order of a rank's weight all-gathers, for layers that reuse the same memory in turn.
#pragma once
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace rankc::lowering {

/// Goes through the layers of a rank in the order in which its actions read their weights.
class gather_order {
 public:
  /// The memory of a layer's gathered weights.
  /// Units: elements.
  struct extent {
    std::size_t first, last;
    constexpr bool meets(const extent& other) const { return first < other.last && other.first < last; }
  };

  /// `ahead` is the number of layers by which all-gathers run ahead.
  /// Shapes: reads, indices of layers; memory (layers).
  constexpr gather_order(std::vector<int> reads, std::vector<extent> memory, int ahead)
      : reads_(std::move(reads)), memory_(std::move(memory)), ahead_(static_cast<std::size_t>(ahead)) {}

  /// The layers to gather before the next read: that layer, and the next ones whose memory is free. Layers
  /// that are already gathered are left out.
  constexpr std::vector<int> next() {
    std::vector<int> to_gather;
    hold(reads_[at_], to_gather);
    for (std::size_t next = at_ + 1; next < reads_.size() && next <= at_ + ahead_ && is_free(next); ++next)
      hold(reads_[next], to_gather);
    ++at_;
    return to_gather;
  }
  constexpr bool is_done() const { return at_ == reads_.size(); }

 private:
  constexpr bool meet(int a, int b) const {
    return memory_[static_cast<std::size_t>(a)].meets(memory_[static_cast<std::size_t>(b)]);
  }
  constexpr void hold(int layer, std::vector<int>& to_gather) {
    if (std::find(held_.begin(), held_.end(), layer) != held_.end()) return;
    std::erase_if(held_, [&](int other) { return meet(other, layer); });
    held_.push_back(layer);
    to_gather.push_back(layer);
  }
  /// True if no weights that are read before read `next` use its memory.
  constexpr bool is_free(std::size_t next) const {
    return std::none_of(reads_.begin() + static_cast<std::ptrdiff_t>(at_),
                        reads_.begin() + static_cast<std::ptrdiff_t>(next),
                        [&](int before) { return before != reads_[next] && meet(before, reads_[next]); });
  }

  std::vector<int> reads_;
  std::vector<extent> memory_;
  std::size_t ahead_, at_ = 0;  // ahead_: layers; at_: the next read
  std::vector<int> held_;       // layers whose weights are gathered
};

}  // namespace rankc::lowering
