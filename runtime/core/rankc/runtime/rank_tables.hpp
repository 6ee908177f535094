// SPDX-License-Identifier: Apache-2.0
// The ranks and communicators of a program as rules over its mesh, and the tables that follow from the rules.
// A rule is as short for 8,192 ranks as for 8.
#pragma once
#include <rankc/runtime/program.hpp>

#include <algorithm>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rankc::runtime {

/// A coordinate of ranks: one digit of a rank's number. Neighbours along it are `stride` ranks apart.
struct coordinate {
  int size = 1, stride = 1;
  constexpr int of(int rank) const { return rank / stride % size; }
};

/// The coordinates in the rows of ranks.
struct rank_rule {
  coordinate pp = {}, dp = {}, tp = {}, cp = {}, ep = {};
  constexpr int world() const { return pp.size * dp.size * tp.size * cp.size * ep.size; }
};

/// A coordinate in a communicator's name: "dp 1".
struct place_word {
  const char* axis = "";
  coordinate at = {};
};

/// A communicator in each group of ranks: of the whole group, or of two of its ranks. It is made only if all
/// of these ranks have the lane.
struct group_communicator {
  const char* name;  // without coordinates: "activations 0 -> 1"
  runtime::over over;
  const char* lane;              // all ranks use it; of two ranks, the first
  const char* second_lane = "";  // the second of two ranks uses it
  int first = -1, second = -1;   // places of the two ranks in the group; -1: the whole group
};

/// The most coordinates along which ranks of a group differ, and the most in a communicator's name.
inline constexpr std::size_t most_across = 3, most_words = 8;

/// The groups of ranks that differ in some coordinates and agree in all others.
struct group_rule {
  coordinate across[most_across] = {};  // outermost first
  std::span<const group_communicator> communicators = {};
  place_word place[most_words] = {};  // in the communicators' names
};

namespace detail {

inline bool begins_group(int rank, std::span<const coordinate> across) {
  return std::ranges::all_of(across, [=](const coordinate& c) { return c.of(rank) == 0; });
}

/// The ranks of the group that begins with `first`, in ascending order.
inline std::vector<int> group_from(int first, std::span<const coordinate> across) {
  std::vector<int> ranks{first};
  for (const coordinate& c : across) {
    std::vector<int> all;
    for (const int rank : ranks)
      for (int i = 0; i < c.size; ++i) all.push_back(rank + i * c.stride);
    ranks = std::move(all);
  }
  return ranks;
}

/// " at pp 0 dp 1"
inline std::string place_text(int rank, std::span<const place_word> words) {
  std::string text = " at";
  for (const place_word& w : words)
    if (!std::string_view(w.axis).empty())
      text += std::string(" ") + w.axis + " " + std::to_string(w.at.of(rank));
  return text;
}

}  // namespace detail

/// Calls make(name, ranks, over, lanes) for each communicator, in the order in which all ranks create them:
/// by rule, then by the group's first rank. `find_lane(rank, name)` is the index of a rank's lane, or -1 for
/// an unknown lane. The rules are group_rules, or have the same members.
void each_communicator(int world, const auto& rules, auto&& find_lane, auto&& make) {
  for (const auto& rule : rules)
    for (int rank = 0; rank < world; ++rank) {
      if (!detail::begins_group(rank, rule.across)) continue;
      const std::vector<int> group = detail::group_from(rank, rule.across);
      const std::string place = detail::place_text(rank, rule.place);
      for (const auto& c : rule.communicators) {
        const bool is_pair = c.first >= 0;
        const auto member = [&](int i) { return group[static_cast<std::size_t>(i)]; };
        const std::vector<int> ranks = is_pair ? std::vector{member(c.first), member(c.second)} : group;
        std::vector<int> lanes;
        for (const int r : ranks)
          lanes.push_back(find_lane(r, is_pair && !lanes.empty() ? c.second_lane : c.lane));
        if (std::ranges::find(lanes, -1) == lanes.end()) make(c.name + place, ranks, c.over, lanes);
      }
    }
}

/// The rows of ranks and communicators that rules stand for.
class rank_tables {
 public:
  rank_tables(const rank_rule& rule, std::span<const layout> layouts, std::span<const group_rule> groups)
      : links_(static_cast<std::size_t>(rule.world())) {
    const int world = rule.world();
    const auto find_lane = [&](int rank, std::string_view name) {
      const auto pp = static_cast<std::size_t>(rule.pp.of(rank));
      if (rank >= world || pp >= layouts.size()) return -1;
      const auto& lanes = layouts[pp].lanes;
      const auto at = std::ranges::find_if(lanes, [=](const lane_row& l) { return l.name == name; });
      return at == lanes.end() ? -1 : static_cast<int>(at - lanes.begin());
    };
    each_communicator(world, groups, find_lane,
                      [&](std::string name, const std::vector<int>& ranks, over of,
                          const std::vector<int>& lanes) { add(std::move(name), ranks, of, lanes); });
    for (int rank = 0; rank < world; ++rank)
      rows_.push_back({rule.pp.of(rank), rule.dp.of(rank), rule.tp.of(rank),
                       links_[static_cast<std::size_t>(rank)], rule.cp.of(rank), rule.ep.of(rank)});
  }
  rank_tables(const rank_tables&) = delete;
  rank_tables& operator=(const rank_tables&) = delete;

  std::span<const rank_row> ranks() const { return rows_; }
  std::span<const communicator> communicators() const { return communicators_; }

 private:
  void add(std::string name, const std::vector<int>& ranks, over of, const std::vector<int>& lanes) {
    for (std::size_t i = 0; i < ranks.size(); ++i)
      links_[static_cast<std::size_t>(ranks[i])].push_back(
          {lanes[i], of, static_cast<int>(communicators_.size())});
    names_.push_back(std::move(name));
    members_.push_back(ranks);
    communicators_.push_back({names_.back().c_str(), members_.back()});
  }

  std::deque<std::string> names_;
  std::deque<std::vector<int>> members_;
  std::vector<std::vector<lane_communicator>> links_;  // by rank
  std::vector<communicator> communicators_;
  std::vector<rank_row> rows_;
};

}  // namespace rankc::runtime
