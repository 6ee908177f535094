// SPDX-License-Identifier: Apache-2.0
// What ranks keep at least of whom no more is known than their stages.
#pragma once
#include <rankc/schedule/actions.hpp>

#include <algorithm>
#include <vector>

namespace rankc::plan_search {

/// What ranks take at least whose stages are known. Units: bytes.
/// Shapes: (pipeline ranks).
struct placed_memory {
  struct rank {
    std::size_t bytes, of_one,
        of_stage;  // with one microbatch of each direction; what these take of it; what one takes on a stage
  };
  std::vector<rank> ranks;

  constexpr std::size_t most() const {
    std::size_t most = 0;
    for (const rank& r : ranks) most = std::max(most, r.bytes);
    return most;
  }
  /// By a schedule that has so many microbatches of a stage in flight.
  constexpr std::size_t most_with(const std::vector<int>& in_flight) const {
    std::size_t most = 0;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const std::size_t of_all = static_cast<std::size_t>(in_flight[r]) * ranks[r].of_stage;
      most = std::max(most, ranks[r].bytes + (of_all > ranks[r].of_one ? of_all - ranks[r].of_one : 0));
    }
    return most;
  }
  /// Of either, on the same ranks.
  constexpr void join(const placed_memory& other) {
    for (std::size_t r = 0; r < ranks.size(); ++r)
      ranks[r] = {std::min(ranks[r].bytes, other.ranks[r].bytes),
                  std::max(ranks[r].of_one, other.ranks[r].of_one),
                  std::min(ranks[r].of_stage, other.ranks[r].of_stage)};
  }
};

namespace detail {

/// The actions of one microbatch of each direction on given stages: whatever the order is, at some time the
/// ranks keep what these do.
constexpr action_table one_microbatch(action_table t, bool in_halves) {
  const auto add = [&](int rank, int microbatch) {
    std::vector<int> own;
    for (int stage = 0; stage < t.stages(); ++stage)
      if (t.rank_of(stage, microbatch) == rank) own.push_back(stage);
    for (const int stage : own) t.actions.push_back({action_kind::F, stage, microbatch});
    for (; !own.empty(); own.pop_back()) {
      t.actions.push_back({in_halves ? action_kind::I : action_kind::B, own.back(), microbatch});
      if (in_halves) t.actions.push_back({action_kind::W, own.back(), microbatch});
    }
  };
  for (int rank = 0; rank < t.ranks(); ++rank) {
    t.begin[static_cast<std::size_t>(rank)] = static_cast<int>(t.actions.size());
    add(rank, 0);
    if (t.bidirectional() && t.reversed_from < t.microbatches) add(rank, t.reversed_from);
  }
  t.begin.back() = static_cast<int>(t.actions.size());
  return t;
}

constexpr bool has_halves(const action_table& t) {
  for (const action& a : t.actions)
    if (a.kind == action_kind::I || a.kind == action_kind::W) return true;
  return false;
}

}  // namespace detail

}  // namespace rankc::plan_search
