// SPDX-License-Identifier: Apache-2.0
#include <rankc/mesh/axes_check.hpp>

#include <algorithm>
#include <stdexcept>

#include "edges.hpp"
#include "lanes.hpp"
#include "passes.hpp"
#include "roles.hpp"

namespace rankc::codegen {

runtime::over role_over(axis a) {
  const axis of = a == axis::cp ? axis::ring : a;
  if (const auto role = find_role(of, row(of).carries.purpose)) return *role;
  throw std::logic_error("what the groups of " + std::string(name(a)) + " communicate is not lowered");
}

std::vector<runtime::over> roles_of_tokens(const parallel_dims& d) {
  std::vector<runtime::over> roles;
  if (weight_shards(d) > 1) roles.push_back(role_over(axis::fsdp));
  if (weight_replicas(d) > 1) roles.push_back(role_over(axis::replicas));
  return roles;
}

runtime::over role_along(axis a) {
  if (a == axis::cp) return role_over(a);
  for (const role_row& r : role_rows)
    if (parts_of(r.over).has(parts_of(a))) return r.role;
  throw std::logic_error(std::string(name(a)) + " is not lowered");
}

namespace {

/// " at pp 0 dp 1": the coordinates of a group across an axis on the other lowered axes. dp_shard and cp are
/// listed if above 1, ep if it is a separate axis.
std::string place_of(const layout& mesh, const coord& c, axis across) {
  const parallel_dims& d = mesh.dims();
  const bool spans_cp = parts_of(axis::cp).has(parts_of(across)) ||
                        across == (d.cp_weights == cp_weights::shard ? axis::fsdp : axis::replicas);
  std::string s = " at";
  for (axis a : listed_axes) {
    if (row(a).lowered == lowered_values::nothing ||
        (row(a).fills != fills::world && !(a == axis::ep && repeats_tokens(d))) ||
        role_along(a) == role_over(across) || (a == axis::cp && (spans_cp || d.cp == 1)) ||
        (a == axis::dp_shard && d.dp_shard == 1))
      continue;
    s += std::string(" ") + role_name(role_along(a)) + " " +
         std::to_string(a == axis::cp ? cp_of(d, c) : c[a]);
  }
  for (const auto& [part, other] : {std::pair(axis::ring, axis::ulysses), {axis::ulysses, axis::ring}})
    if (across == part && ranks_along(d, other) > 1)
      s += std::string(" ") + std::string(name(other)) + " " + std::to_string(c[other]);
  return s;
}

class maker {
 public:
  explicit maker(lowered& l) : l_(l), mesh_(l.plan->dims), edges_(edges_of(l.plan->actions)) {
    l_.communicator_of.assign(static_cast<std::size_t>(mesh_.ranks()), {});
    for (pipeline_rank& r : l_.ranks) r.lanes = lanes_of(*l_.plan, r.index);
  }

  /// The innermost groups come first. Pairs of pipeline ranks come with the groups of their pipeline.
  void run() {
    std::vector<planned_communicator> plan = communicators_of_step(mesh_);
    std::reverse(plan.begin(), plan.end());
    for (const planned_communicator& c : plan)
      for (const communicator_purpose& p : c.serves)
        if (p.as != purpose::loss) add_groups(c, is_all_of_cp(p.over) ? axis::cp : p.over);
  }

 private:
  bool is_all_of_cp(axis a) const {
    return (a == axis::ring || a == axis::ulysses) && ranks_along(mesh_.dims(), a) == mesh_.dims().cp;
  }
  /// Adds a communicator for each purpose of a group of ranks.
  void add_groups(const planned_communicator& c, axis across) {
    const runtime::over as = role_over(across);
    for (const std::vector<int>& ranks : c.groups.groups(mesh_.ranks())) {
      const coord at = mesh_.at(ranks[0]);
      const std::string place = place_of(mesh_, at, across);
      const pipeline_rank& r = l_.ranks[at[axis::pp]];
      const bool rings = as == runtime::over::cp && ring_ranks(l_.plan->dims) > 1;
      add(role_name(as) + place, ranks, as, rings ? ring_lane(r.lanes) : lane_over(as));
      if (rings && communicates_beside_rings(l_.plan->kinds, l_.plan->dims))
        add(role_name(as) + std::string(" of layers") + place, ranks, as, compute_lane);
      if (as == runtime::over::shard) add("gathering" + place, ranks, as, gather_lane(r.lanes));
      if (as == runtime::over::efsdp) add("gathering of experts" + place, ranks, as, gather_lane(r.lanes));
      const bool in_layers = as == runtime::over::tp || as == runtime::over::cp ||
                             as == runtime::over::ulysses || as == runtime::over::ep ||
                             as == runtime::over::etp;
      if (in_layers && r.overlaps)
        add(role_name(as) + std::string(" of what overlaps") + place, ranks, as, overlap_lane);
      const bool of_batch = as == runtime::over::shard || as == runtime::over::dp;
      if (of_batch && sums_over_batch(l_.plan->kinds)) {
        add(role_name(as) + std::string(" of layers") + place, ranks, as, compute_lane);
        if (r.overlaps)
          add(role_name(as) + std::string(" of layers of what overlaps") + place, ranks, as, overlap_lane);
      }
      if (as == runtime::over::pp) add_pairs(ranks, place);
    }
  }
  void add(std::string name, const std::vector<int>& ranks, runtime::over as, int lane) {
    add(std::move(name), ranks, as, std::vector<int>(ranks.size(), lane));
  }
  /// `lanes`: one for each rank.
  void add(std::string name, const std::vector<int>& ranks, runtime::over as, const std::vector<int>& lanes) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      pipeline_rank& r = l_.ranks[mesh_.at(ranks[i])[axis::pp]];
      std::vector<int>& own = l_.communicator_of[ranks[i]];
      if (own.size() == r.links.size()) r.links.push_back({lanes[i], as});
      if (r.links[own.size()].lane != lanes[i] || r.links[own.size()].over != as)
        throw std::logic_error("the ranks of a pipeline coordinate have different communicators");
      own.push_back(static_cast<int>(l_.communicators.size()));
    }
    l_.communicators.push_back({std::move(name), ranks});
  }
  void add_pairs(const std::vector<int>& pipeline, const std::string& where) {
    for (const auto& [a, b] : l_.tied)
      add((l_.plan->actions.bidirectional()
               ? "copies of ranks " + std::to_string(a) + " and " + std::to_string(b)
               : "tied weights") +
              where,
          {pipeline[a], pipeline[b]}, runtime::over::tied, reduce_lane);
    for (const pipeline_edge& e : edges_)
      add(e.carries + " " + std::to_string(e.from) + " -> " + std::to_string(e.to) + where,
          {pipeline[e.from], pipeline[e.to]}, runtime::over::peer,
          {find_lane(l_.ranks[e.from].lanes, e.to, true), find_lane(l_.ranks[e.to].lanes, e.from, false)});
  }

  lowered& l_;
  const layout mesh_;
  const std::vector<pipeline_edge> edges_;
};

}  // namespace

void make_communicators(lowered& l) { maker(l).run(); }

}  // namespace rankc::codegen
