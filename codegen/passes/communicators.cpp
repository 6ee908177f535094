// SPDX-License-Identifier: Apache-2.0
#include <rankc/axes_check.hpp>

#include <algorithm>
#include <stdexcept>

#include "edges.hpp"
#include "passes.hpp"
#include "roles.hpp"

namespace rankc::codegen {

role role_over(axis a) {
  if (const role_row* r = find_role(a, row(a).carries.purpose)) return r->role;
  throw std::logic_error("what the groups of " + std::string(name(a)) + " communicate is not lowered");
}

role role_along(axis a) {
  for (const role_row& r : role_rows)
    if (parts_of(r.over).has(parts_of(a))) return r.role;
  throw std::logic_error(std::string(name(a)) + " is not lowered");
}

namespace {

/// The one role of all that a planned communicator serves.
role role_of(const planned_communicator& c) {
  const role first = role_over(c.serves.front().over);
  for (const communicator_purpose& p : c.serves)
    if (role_over(p.over) != first)
      throw std::logic_error("one communicator would have the roles of " + std::string(name(c.serves.front().over)) +
                             " and " + std::string(name(p.over)));
  return first;
}

/// " at pp 0 dp 1": where the groups of a role lie on the other axes that are lowered.
std::string place_of(const coord& c, role but) {
  std::string s = " at";
  for (axis a : listed_axes)
    if (row(a).lowered != lowering::nothing && role_along(a) != but)
      s += std::string(" ") + role_name(role_along(a)) + " " + std::to_string(c[a]);
  return s;
}

class maker {
 public:
  explicit maker(lowered& l) : l_(l), mesh_(l.plan->dims), edges_(edges_of(l.plan->actions)) {
    l_.communicator_of.assign(static_cast<std::size_t>(mesh_.ranks()), {});
    for (auto& of : l_.communicator_of) of.fill(-1);
  }

  /// The innermost groups first. Pairs of pipeline ranks lie in the groups of a pipeline.
  void run() {
    std::vector<planned_communicator> plan = plan_communicators(mesh_, false, false);
    std::reverse(plan.begin(), plan.end());
    for (const planned_communicator& c : plan) {
      const role as = role_of(c);
      for (const std::vector<int>& ranks : c.groups.groups(mesh_.ranks())) {
        const coord at = mesh_.at(ranks[0]);
        add(role_name(as) + place_of(at, as), ranks, {as, as});
        if (as == role::tp && l_.ranks[at[axis::pp]].overlaps)
          add("tp of what overlaps" + place_of(at, as), ranks, {role::tp_beside, role::tp_beside});
        if (as == role::pp) add_pairs(ranks, place_of(at, as));
      }
    }
  }

 private:
  /// `roles`: of the first rank, and of the others.
  void add(std::string name, const std::vector<int>& ranks, std::array<role, 2> roles) {
    for (std::size_t i = 0; i < ranks.size(); ++i)
      l_.communicator_of[ranks[i]][static_cast<int>(roles[i > 0])] = static_cast<int>(l_.communicators.size());
    l_.communicators.push_back({std::move(name), ranks});
  }
  void add_pairs(const std::vector<int>& pipeline, const std::string& where) {
    for (const auto& [a, b] : l_.tied)
      add((l_.plan->actions.bidirectional() ? "copies of ranks " + std::to_string(a) + " and " + std::to_string(b)
                                            : "tied weights") +
              where,
          {pipeline[a], pipeline[b]}, {role::tied, role::tied});
    for (const pipeline_edge& e : edges_)
      add(e.carries + " " + std::to_string(e.from) + " -> " + std::to_string(e.to) + where,
          {pipeline[e.from], pipeline[e.to]}, {codegen::role_of(e.out), codegen::role_of(e.in)});
  }

  lowered& l_;
  const layout mesh_;
  const std::vector<pipeline_edge> edges_;
};

}  // namespace

void make_communicators(lowered& l) { maker(l).run(); }

}  // namespace rankc::codegen
