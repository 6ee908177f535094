// SPDX-License-Identifier: Apache-2.0
// Rules over a mesh give the rows of ranks and communicators that a table would list.
#include <doctest/doctest.h>

#include <rankc/runtime/rank_tables.hpp>

#include <array>
#include <string>
#include <vector>

namespace rank_tables_test {

using namespace rankc::runtime;

namespace {

constexpr lane_row first_lanes[]{{"compute", true}, {"reduce", false}, {"to_next", false}},
    last_lanes[]{{"compute", true}, {"reduce", false}, {"overlap", true}, {"from_prev", false}};

/// Two pipeline coordinates, of which the last one alone has an overlap lane.
std::array<layout, 2> two_layouts() {
  std::array<layout, 2> all{};
  all[0].lanes = first_lanes;
  all[1].lanes = last_lanes;
  return all;
}

constexpr rank_rule mesh{.pp = {2, 4}, .dp = {2, 2}, .tp = {2, 1}};

constexpr group_communicator along_tp[]{{"tp", over::tp, "compute"}, {"overlapping tp", over::tp, "overlap"}},
    along_pp[]{{"pp", over::pp, "compute"}, {"gradients 1 -> 0", over::peer, "from_prev", "to_next", 1, 0}};

constexpr group_rule groups[]{
    {.across = {{2, 1}}, .communicators = along_tp, .place = {{"pp", {2, 4}}, {"dp", {2, 2}}}},
    {.across = {{2, 4}}, .communicators = along_pp, .place = {{"dp", {2, 2}}, {"tp", {2, 1}}}}};

std::string text_of(const communicator& c) {
  std::string text = std::string(c.name) + ":";
  for (const int r : c.ranks) text += " " + std::to_string(r);
  return text;
}

std::vector<std::string> texts_of(const rank_tables& t) {
  std::vector<std::string> all;
  for (const communicator& c : t.communicators()) all.push_back(text_of(c));
  return all;
}

}  // namespace

TEST_CASE("communicators are created by rule, then by the first rank of the group") {
  const auto layouts = two_layouts();
  CHECK(texts_of(rank_tables(mesh, layouts, groups)) ==
        std::vector<std::string>{"tp at pp 0 dp 0: 0 1", "tp at pp 0 dp 1: 2 3", "tp at pp 1 dp 0: 4 5",
                                 "overlapping tp at pp 1 dp 0: 4 5", "tp at pp 1 dp 1: 6 7",
                                 "overlapping tp at pp 1 dp 1: 6 7", "pp at dp 0 tp 0: 0 4",
                                 "gradients 1 -> 0 at dp 0 tp 0: 4 0", "pp at dp 0 tp 1: 1 5",
                                 "gradients 1 -> 0 at dp 0 tp 1: 5 1", "pp at dp 1 tp 0: 2 6",
                                 "gradients 1 -> 0 at dp 1 tp 0: 6 2", "pp at dp 1 tp 1: 3 7",
                                 "gradients 1 -> 0 at dp 1 tp 1: 7 3"});
}

TEST_CASE("a rank has its coordinates, and its communicators on the lanes of its pipeline coordinate") {
  const auto layouts = two_layouts();
  const rank_tables t(mesh, layouts, groups);
  REQUIRE(t.ranks().size() == 8);
  for (int rank = 0; rank < 8; ++rank) {
    const rank_row& r = t.ranks()[static_cast<std::size_t>(rank)];
    CHECK(4 * r.pp + 2 * r.dp + r.tp == rank);
    CHECK(r.cp == 0);
    CHECK(r.ep == 0);
  }
  using links = std::vector<std::array<int, 3>>;
  const auto links_of = [&](std::size_t rank) {
    links all;
    for (const lane_communicator& k : t.ranks()[rank].links)
      all.push_back({k.lane, static_cast<int>(k.over), k.communicator});
    return all;
  };
  const int tp = static_cast<int>(over::tp), pp = static_cast<int>(over::pp),
            peer = static_cast<int>(over::peer);
  CHECK(links_of(3) == links{{0, tp, 1}, {0, pp, 12}, {2, peer, 13}});
  CHECK(links_of(5) == links{{0, tp, 2}, {2, tp, 3}, {0, pp, 8}, {3, peer, 9}});
}

TEST_CASE("ranks of a group may differ in coordinates that are not neighbours in the mesh") {
  static constexpr group_communicator over_replicas[]{{"dp", over::dp, "reduce"}};
  constexpr group_rule replicas[]{
      {.across = {{2, 6}, {3, 1}}, .communicators = over_replicas, .place = {{"shard", {2, 3}}}}};
  const auto layouts = two_layouts();
  CHECK(texts_of(rank_tables({.dp = {4, 3}, .cp = {3, 1}}, layouts, replicas)) ==
        std::vector<std::string>{"dp at shard 0: 0 1 2 6 7 8", "dp at shard 1: 3 4 5 9 10 11"});
}

TEST_CASE("a rule that names no lane of a rank, or no rank of the world, makes no communicator") {
  const auto layouts = two_layouts();
  static constexpr group_communicator on_ring[]{{"cp", over::cp, "ring"}},
      pairs[]{{"pp", over::pp, "compute"}};
  constexpr group_rule unknown[]{{.across = {{2, 1}}, .communicators = on_ring},
                                 {.across = {{2, 8}}, .communicators = pairs}};
  const rank_tables t(mesh, layouts, unknown);
  CHECK(t.communicators().empty());
  CHECK(t.ranks().size() == 8);
}

}  // namespace rank_tables_test
