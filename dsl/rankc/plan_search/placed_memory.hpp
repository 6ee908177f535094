// SPDX-License-Identifier: Apache-2.0
// A lower bound of each rank's memory when only its stages are known.
#pragma once
#include <rankc/schedule/actions.hpp>

#include <algorithm>
#include <vector>

namespace rankc::plan_search {

/// The bounds of the ranks. `bytes` is for one microbatch in each direction. `of_one` is the part of it that
/// these microbatches need. `of_stage` is what one microbatch needs in the smallest stage of the rank.
/// Units: bytes.
/// Shapes: (pipeline ranks).
struct placed_memory {
  struct rank {
    std::size_t bytes, of_one, of_stage;
  };
  std::vector<rank> ranks;

  constexpr std::size_t most() const {
    std::size_t most = 0;
    for (const rank& r : ranks) most = std::max(most, r.bytes);
    return most;
  }
  /// The bound for a schedule with `in_flight` microbatches of a stage at once.
  constexpr std::size_t most_with(const std::vector<int>& in_flight) const {
    std::size_t most = 0;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const std::size_t of_all = static_cast<std::size_t>(in_flight[r]) * ranks[r].of_stage;
      most = std::max(most, ranks[r].bytes + (of_all > ranks[r].of_one ? of_all - ranks[r].of_one : 0));
    }
    return most;
  }
  /// Joins the bounds of two placements on the same ranks: the result holds for either.
  constexpr void join(const placed_memory& other) {
    for (std::size_t r = 0; r < ranks.size(); ++r)
      ranks[r] = {std::min(ranks[r].bytes, other.ranks[r].bytes),
                  std::max(ranks[r].of_one, other.ranks[r].of_one),
                  std::min(ranks[r].of_stage, other.ranks[r].of_stage)};
  }
};

namespace detail {

/// The actions of one microbatch in each direction on given stages. In any order of actions there is a time
/// at which the ranks keep at least the memory of these.
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
