// SPDX-License-Identifier: Apache-2.0
// Views, coordinates, groups and communicators of all legal dims of up to 64 ranks, against counting.
#include <doctest/doctest.h>

#include <rankc/mesh/communicators.hpp>

#include <set>
#include <string>

#include "counted_mesh.hpp"
#include "legal_dims.hpp"

namespace rankc::test {

namespace {

std::vector<axis_size> sizes_of(const view& v) {
  std::vector<axis_size> out;
  for (const axis_extent& a : v) out.push_back({a.axis, a.size});
  return out;
}

/// A view as a map's key.
std::vector<int> key_of(const view& v) {
  std::vector<int> key;
  for (const axis_extent& a : v) key.insert(key.end(), {static_cast<int>(a.axis), a.size, a.stride});
  return key;
}

/// Whether a rank's indices in both views are those of the nested loops, and map back to the rank.
bool same_coordinates(const layout& l, const counted_mesh& m) {
  using enum mesh_axis;
  for (int r = 0; r < l.ranks(); ++r) {
    const auto i = [&](mesh_axis a) { return m.index(r, a); };
    const coord dense{along<pp>{i(pp)},
                      along<dp_replicate>{i(dp_replicate)},
                      along<dp_shard>{i(dp_shard)},
                      along<ep>{l.dense().find(ep) ? i(ep) : 0},
                      along<ring>{i(ring)},
                      along<ulysses>{i(ulysses)},
                      along<tp>{i(tp)}};
    const expert_coord expert{
        along<pp>{i(pp)}, along<edp_replicate>{i(edp_replicate)}, along<edp_shard>{i(edp_shard)},
        along<ep>{i(ep)}, along<edp_inner>{i(edp_inner)},         along<etp>{i(etp)}};
    if (l.at(r) != dense || l.expert_at(r) != expert || l.flat(dense) != r || l.flat(expert) != r)
      return false;
  }
  return true;
}

/// The groups of a shape, by the colours and keys of a communicator split.
std::vector<std::vector<int>> split(const group_shape& g, int ranks) {
  std::map<int, std::map<int, int>> by_colour;
  int in_groups = 0;
  for (int r = 0; r < ranks; ++r)
    if (g.has(r)) {
      by_colour[g.first(r)][g.place(r)] = r;
      ++in_groups;
    }
  std::vector<std::vector<int>> out;
  for (const auto& [colour, members] : by_colour) {
    out.emplace_back();
    for (const auto& [key, rank] : members) out.back().push_back(rank);
    in_groups -= static_cast<int>(members.size());
  }
  CHECK(in_groups == 0);  // no two ranks of a colour have the same key
  return out;
}

/// The groups of more than one rank of a partition, each in ascending order.
std::vector<std::vector<int>> groups_of(const partition& p) {
  std::map<int, std::vector<int>> by_first;
  for (std::size_t r = 0; r < p.size(); ++r) by_first[p[r]].push_back(static_cast<int>(r));
  std::vector<std::vector<int>> out;
  for (auto& [first, members] : by_first)
    if (members.size() > 1) out.push_back(std::move(members));
  return out;
}

/// The partitions of one world, numbered, so that millions can be compared. Number 0: every rank alone.
class numbered_partitions {
 public:
  explicit numbered_partitions(int ranks) : ranks_(ranks) { number_of(of_shape({}, ranks)); }
  int number_of(const partition& p) {
    const auto [it, added] = numbers_.try_emplace(p, static_cast<int>(numbers_.size()));
    if (added) group_counts_.push_back(static_cast<int>(groups_of(p).size()));
    return it->second;
  }
  /// The number of a shape's partition. The shape's statements about a rank's group are checked when it is
  /// first seen.
  int number_of(const group_shape& g) {
    std::vector<int> key{g.has(ranks_ / 2), g.has(ranks_ - 1)};
    for (const group_shape::run& r : g) key.insert(key.end(), {r.size, r.stride});
    const auto [it, added] = shapes_.try_emplace(key, 0);
    if (added) it->second = checked(g);
    return it->second;
  }
  int groups_in(int number) const { return group_counts_[static_cast<std::size_t>(number)]; }

 private:
  int checked(const group_shape& g) {
    const partition p = of_shape(g, ranks_);
    const auto expected = groups_of(p);
    CHECK(split(g, ranks_) == expected);
    std::vector<std::vector<int>> larger;
    for (const auto& members : g.groups(ranks_))
      if (members.size() > 1) larger.push_back(members);
    CHECK(larger == expected);
    for (const auto& members : expected) CHECK(static_cast<int>(members.size()) == g.size());
    CHECK((g.size() == 1) == expected.empty());
    return number_of(p);
  }

  int ranks_;
  std::map<partition, int> numbers_;
  std::vector<int> group_counts_;
  std::map<std::vector<int>, int> shapes_;
};

}  // namespace

TEST_CASE("coordinates and groups of every axis are those of counting") {
  int configurations = 0, view_pairs = 0;
  for (int world = 1; world <= 64; ++world) {
    CAPTURE(world);
    numbered_partitions partitions(world);
    std::set<std::vector<int>> dense_seen, expert_seen;
    for_each_legal(world, [&](const parallel_dims& d) {
      const layout l(d);
      ++configurations;
      // Coordinates and groups are functions of a view, pp and cp_weights. They are checked once for each of
      // these.
      std::vector<int> dense = key_of(l.dense()), expert = key_of(l.expert());
      dense.push_back(static_cast<int>(d.cp_weights));
      const bool new_dense = dense_seen.insert(std::move(dense)).second,
                 new_expert = expert_seen.insert(std::move(expert)).second;
      const mesh_axes axes = axes_of(d);
      REQUIRE(sizes_of(l.dense()) == axes.dense);
      REQUIRE(sizes_of(l.expert()) == axes.expert);
      if (!new_dense && !new_expert) return;
      ++view_pairs;
      const counted_mesh m = count(d);
      CHECK(same_coordinates(l, m));
      for (int i = 0; i < n_axis_rows; ++i) {
        const axis a = static_cast<axis>(i);
        CAPTURE(std::string(name(a)));
        CHECK(partitions.number_of(l.groups(a)) == partitions.number_of(groups_of(a, d, m)));
      }
    });
  }
  CHECK(configurations == 484588);
  CHECK(view_pairs == 36322);
}

TEST_CASE("the plan of communicators has one for every distinct partition, and none of ranks alone") {
  for (int world = 1; world <= 64; ++world) {
    CAPTURE(world);
    numbered_partitions partitions(world);
    for_each_legal(world, [&](const parallel_dims& d) {
      const layout l(d);
      std::array<int, n_axis_rows> number{};
      const auto at = [](axis a) { return static_cast<std::size_t>(a); };
      for (const communicator_purpose& c : communicator_purposes)
        number[at(c.over)] = partitions.number_of(l.groups(c.over));
      number[at(axis::embedding)] = partitions.number_of(l.groups(axis::embedding));
      for (const bool all : {true, false}) {
        std::vector<int> wanted, served;
        for (const communicator_purpose& c : communicator_purposes) {
          const bool of_experts = c.over == axis::expert_replicas || c.over == axis::efsdp ||
                                  c.over == axis::ep || c.over == axis::etp;
          if (all || !of_experts) wanted.push_back(number[at(c.over)]);
        }
        if (all) wanted.push_back(number[at(axis::embedding)]);
        std::erase(wanted, 0);
        std::sort(wanted.begin(), wanted.end());

        const auto plan = plan_communicators(l, all, all);
        std::set<int> distinct;
        int groups = 0;
        for (const planned_communicator& p : plan) {
          const int made = partitions.number_of(p.groups);
          distinct.insert(made);
          groups += partitions.groups_in(made);
          for (const communicator_purpose& c : p.serves)
            served.push_back(number[at(c.over)] == made ? made : -1);
        }
        std::sort(served.begin(), served.end());
        REQUIRE(distinct.size() == plan.size());
        REQUIRE(served == wanted);
        REQUIRE(count_groups(l, plan) == groups);
      }
    });
  }
}

TEST_CASE("ranks fill one node after the other") {
  int rank = 0;
  for (int node = 0; node < 4; ++node)
    for (int gpu = 0; gpu < 8; ++gpu) CHECK(place_of(rank++, 8) == machine_coord{{node}, {gpu}});
}

}  // namespace rankc::test
