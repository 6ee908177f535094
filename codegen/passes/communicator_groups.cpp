// SPDX-License-Identifier: Apache-2.0
#include "communicator_groups.hpp"

#include <fmt/format.h>
#include <rankc/mesh/axes_check.hpp>

#include <algorithm>
#include <stdexcept>

#include "edges.hpp"
#include "lanes.hpp"
#include "passes.hpp"
#include "roles.hpp"

namespace rankc::codegen {

namespace {

constexpr const char *on_compute = "compute", *on_overlap = "overlap", *on_gather = "gather",
                     *on_ring = "ring";

/// The coordinate of ranks along the dense axes that an axis joins.
/// Errors: std::logic_error if they are not neighbours in the mesh, because a coordinate is one digit.
runtime::coordinate coordinate_along(const layout& mesh, axis a) {
  const group_shape ranks(mesh.dense(), parts_of(a));
  if (ranks.end() - ranks.begin() > 1)
    throw std::logic_error(fmt::format("the ranks along {} have no single stride", name(a)));
  return ranks.size() == 1 ? runtime::coordinate{}
                           : runtime::coordinate{ranks.begin()->size, ranks.begin()->stride};
}

template <std::size_t N, class T>
void add(std::array<T, N>& list, std::size_t at, const T& row) {
  if (at >= N) throw std::logic_error("a rule of communicators has no room for another coordinate");
  list[at] = row;
}

/// The coordinates in the names of an axis' communicators: those on the other lowered axes. dp_shard and cp
/// are listed if above 1, ep if it is a separate axis.
std::vector<runtime::place_word> words_of_place(const layout& mesh, axis across) {
  const parallel_dims& d = mesh.dims();
  const bool spans_cp = parts_of(axis::cp).has(parts_of(across)) ||
                        across == (d.cp_weights == cp_weights::shard ? axis::fsdp : axis::replicas);
  std::vector<runtime::place_word> words;
  for (const axis a : listed_axes) {
    if (rankc::row(a).lowered == lowered_values::nothing ||
        (rankc::row(a).fills != fills::world && !(a == axis::ep && repeats_tokens(d))) ||
        role_along(a) == role_over(across) || (a == axis::cp && (spans_cp || d.cp == 1)) ||
        (a == axis::dp_shard && d.dp_shard == 1))
      continue;
    words.push_back({role_name(role_along(a)), coordinate_along(mesh, a)});
  }
  for (const auto& [part, other] : {std::pair(axis::ring, axis::ulysses), {axis::ulysses, axis::ring}})
    if (across == part && ranks_along(d, other) > 1)
      words.push_back({rankc::row(other).name.data(), coordinate_along(mesh, other)});
  return words;
}

class group_lister {
 public:
  explicit group_lister(const lowered& l)
      : l_(l),
        mesh_(l.plan->dims),
        lanes_(l.ranks.front().lanes),
        overlaps_(std::ranges::any_of(l.ranks, &pipeline_rank::overlaps)) {}

  std::vector<communicator_group> run() {
    std::vector<planned_communicator> plan = communicators_of_step(mesh_);
    std::reverse(plan.begin(), plan.end());
    std::vector<communicator_group> all;
    for (const planned_communicator& c : plan)
      for (const communicator_purpose& p : c.serves)
        if (p.as != purpose::loss) all.push_back(group(c.groups, is_all_of_cp(p.over) ? axis::cp : p.over));
    return all;
  }

 private:
  bool is_all_of_cp(axis a) const {
    return (a == axis::ring || a == axis::ulysses) && ranks_along(mesh_.dims(), a) == mesh_.dims().cp;
  }

  communicator_group group(const group_shape& ranks, axis across) const {
    communicator_group g{.communicators = over(role_over(across))};
    std::size_t n = 0;
    for (const group_shape::run& r : ranks) add(g.across, n++, runtime::coordinate{r.size, r.stride});
    n = 0;
    for (const runtime::place_word& w : words_of_place(mesh_, across)) add(g.place, n++, w);
    return g;
  }

  /// A communicator for each purpose of a group of ranks.
  std::vector<communicator_rule> over(runtime::over as) const {
    const std::string role = role_name(as);
    std::vector<communicator_rule> all;
    const auto make = [&](const std::string& name, const std::string& lane) {
      if (lane != on_overlap || overlaps_) all.push_back({name, as, lane});
    };
    const bool rings = as == runtime::over::cp && ring_ranks(l_.plan->dims) > 1;
    make(role, rings ? on_ring : lanes_[static_cast<std::size_t>(lane_over(as))].name);
    if (rings && communicates_beside_rings(l_.plan->kinds, l_.plan->dims))
      make(role + " of layers", on_compute);
    if (as == runtime::over::shard) make("gathering", on_gather);
    if (as == runtime::over::efsdp) make("gathering of experts", on_gather);
    const bool in_layers = as == runtime::over::tp || as == runtime::over::cp ||
                           as == runtime::over::ulysses || as == runtime::over::ep ||
                           as == runtime::over::etp;
    if (in_layers) make(role + " of what overlaps", on_overlap);
    const bool of_batch = as == runtime::over::shard || as == runtime::over::dp;
    if (of_batch && sums_over_batch(l_.plan->kinds)) {
      make(role + " of layers", on_compute);
      make(role + " of layers of what overlaps", on_overlap);
    }
    if (as == runtime::over::pp) add_pairs(all);
    return all;
  }

  void add_pairs(std::vector<communicator_rule>& all) const {
    const std::string reduce = lanes_[reduce_lane].name;
    for (const auto& [a, b] : l_.tied)
      all.push_back(
          {l_.plan->actions.bidirectional() ? fmt::format("copies of ranks {} and {}", a, b) : "tied weights",
           runtime::over::tied, reduce, reduce, a, b});
    for (const pipeline_edge& e : edges_of(l_.plan->actions))
      all.push_back({fmt::format("{} {} -> {}", e.carries, e.from, e.to), runtime::over::peer,
                     lane_between(e.from, e.to, true), lane_between(e.to, e.from, false), e.from, e.to});
  }
  const std::string& lane_between(int rank, int peer, bool sends) const {
    const std::vector<lane>& lanes = l_.ranks[static_cast<std::size_t>(rank)].lanes;
    return lanes[static_cast<std::size_t>(find_lane(lanes, peer, sends))].name;
  }

  const lowered& l_;
  const layout mesh_;
  const std::vector<lane>& lanes_;  // the first two are the same on all ranks
  const bool overlaps_;
};

}  // namespace

std::vector<communicator_group> list_communicator_groups(const lowered& l) { return group_lister(l).run(); }

runtime::rank_rule coordinates_of_ranks(const parallel_dims& d) {
  const layout mesh(d);
  return {.pp = coordinate_along(mesh, axis::pp),
          .dp = coordinate_along(mesh, axis::batch),
          .tp = coordinate_along(mesh, region_axis),
          .cp = coordinate_along(mesh, axis::cp),
          .ep = repeats_tokens(d) ? coordinate_along(mesh, axis::ep) : runtime::coordinate{}};
}

}  // namespace rankc::codegen
