// SPDX-License-Identifier: Apache-2.0
// Where the weights of a rank's layers lie when they are gathered: each in a place of its own, or in two places by turns, so
// that one layer's are gathered while another is computed.
#pragma once
#include <algorithm>
#include <cstddef>

namespace rankc::program {

/// Units: elements.
class gathered_places {
 public:
  static constexpr std::size_t turns = 2;

  explicit constexpr gathered_places(bool takes_turns) : takes_turns_(takes_turns) {}

  /// The next layer of the rank: which of the places that layers share it has.
  constexpr std::size_t next() {
    if (!takes_turns_) return 0;
    place_ = count_++ % turns;
    used_ = 0;
    return place_;
  }
  /// Where so many elements of that layer begin, from the begin of its place on, which is known once all layers have theirs.
  constexpr std::size_t take(std::size_t elements) {
    const std::size_t here = used_;
    used_ += elements;
    most_[place_] = std::max(most_[place_], used_);
    return here;
  }
  constexpr std::size_t begin(std::size_t place) const { return place == 0 ? 0 : most_[0]; }
  constexpr std::size_t elements() const { return most_[0] + most_[1]; }

 private:
  bool takes_turns_;
  std::size_t count_ = 0, place_ = 0, used_ = 0, most_[turns]{};
};

}  // namespace rankc::program
