// SPDX-License-Identifier: Apache-2.0
// Groups of ranks that differ along some axes of a view and along no others. The shape of such groups has one
// canonical form, so two shapes are equal exactly if they have the same groups.
#pragma once
#include <rankc/mesh/view.hpp>

namespace rankc {

/// The positions of groups among the ranks: nested runs, outermost first. No run has size 1, and no two runs
/// could be merged.
class group_shape {
 public:
  struct run {
    int size = 1, stride = 1;
    constexpr bool operator==(const run&) const = default;
  };

  /// Groups of one rank each.
  constexpr group_shape() = default;
  /// The groups across the given axes of a view. Axes that the view does not have are of size 1.
  constexpr group_shape(const view& v, axis_set across) {
    for (const axis_extent& a : v)
      if (across.has(a.axis)) add({a.size, a.stride});
  }
  /// The first and the last of `stages` pipeline stages of `stage` ranks each. The ranks between them are in
  /// groups of one.
  static constexpr group_shape ends(int stages, int stage) {
    group_shape s;
    if (stages > 1) s.add({2, (stages - 1) * stage});
    if (stages > 2) s.below_ = stage;
    return s;
  }

  constexpr const run* begin() const { return runs_.data(); }
  constexpr const run* end() const { return runs_.data() + count_; }
  constexpr bool operator==(const group_shape&) const = default;

  /// The number of ranks in a group. In a shape of ends it is that of the groups with more than one rank.
  constexpr int size() const {
    int n = 1;
    for (const run& r : *this) n *= r.size;
    return n;
  }
  /// True if a rank is in a group with others.
  constexpr bool has(int rank) const {
    return count_ > 0 && (below_ == 0 || rank < below_ || rank >= runs_[0].stride);
  }
  /// The lowest rank of a rank's group: the colour of a communicator split.
  constexpr int first(int rank) const {
    if (has(rank))
      for (const run& r : *this) rank -= rank / r.stride % r.size * r.stride;
    return rank;
  }
  /// A rank's place in its group: the key of a communicator split.
  constexpr int place(int rank) const {
    int n = 0;
    if (has(rank))
      for (const run& r : *this) n = n * r.size + rank / r.stride % r.size;
    return n;
  }
  /// The rank at a place of the group that begins with `first`.
  constexpr int at(int first, int place) const {
    for (int i = count_; i-- > 0; place /= runs_[static_cast<std::size_t>(i)].size)
      first += place % runs_[static_cast<std::size_t>(i)].size * runs_[static_cast<std::size_t>(i)].stride;
    return first;
  }
  /// The number of groups with more than one rank.
  constexpr int count(int ranks) const {
    if (count_ == 0) return 0;
    return below_ > 0 ? below_ : ranks / size();
  }
  /// The ranks of a rank's group, in ascending order.
  constexpr std::vector<int> members(int rank) const {
    std::vector<int> out;
    const int n = has(rank) ? size() : 1;
    for (int i = 0; i < n; ++i) out.push_back(at(first(rank), i));
    return out;
  }
  /// All groups of `ranks` ranks, in the order of their first ranks. Every rank is in exactly one.
  constexpr std::vector<std::vector<int>> groups(int ranks) const {
    std::vector<std::vector<int>> out;
    for (int r = 0; r < ranks; ++r)
      if (first(r) == r) out.push_back(members(r));
    return out;
  }

 private:
  constexpr void add(run r) {
    if (r.size == 1) return;
    if (count_ > 0 && runs_[static_cast<std::size_t>(count_) - 1].stride == r.size * r.stride) {
      runs_[static_cast<std::size_t>(count_) - 1].size *= r.size;
      runs_[static_cast<std::size_t>(count_) - 1].stride = r.stride;
    } else {
      runs_[static_cast<std::size_t>(count_++)] = r;
    }
  }

  std::array<run, detail::lists.listed.count> runs_{};
  int count_ = 0;
  int below_ = 0;  // if above 0, only ranks below it and from the outermost stride on have a group
};

}  // namespace rankc
