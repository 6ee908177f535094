// SPDX-License-Identifier: Apache-2.0
#include <rankc/mesh/axes_check.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "communicator_groups.hpp"
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

void make_communicators(lowered& l) {
  const layout mesh(l.plan->dims);
  l.communicator_of.assign(static_cast<std::size_t>(mesh.ranks()), {});
  for (pipeline_rank& r : l.ranks) r.lanes = lanes_of(*l.plan, r.index);
  const auto of_rank = [&](int rank) -> pipeline_rank& {
    return l.ranks[static_cast<std::size_t>(mesh.at(rank)[axis::pp])];
  };
  const auto find_lane = [&](int rank, const std::string& name) {
    const std::vector<lane>& lanes = of_rank(rank).lanes;
    const auto at = std::ranges::find(lanes, name, &lane::name);
    return at == lanes.end() ? -1 : static_cast<int>(at - lanes.begin());
  };
  const auto add = [&](std::string name, const std::vector<int>& ranks, runtime::over as,
                       const std::vector<int>& lanes) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      pipeline_rank& r = of_rank(ranks[i]);
      std::vector<int>& own = l.communicator_of[static_cast<std::size_t>(ranks[i])];
      if (own.size() == r.links.size()) r.links.push_back({lanes[i], as});
      if (r.links[own.size()].lane != lanes[i] || r.links[own.size()].over != as)
        throw std::logic_error("the ranks of a pipeline coordinate have different communicators");
      own.push_back(static_cast<int>(l.communicators.size()));
    }
    l.communicators.push_back({std::move(name), ranks});
  };
  runtime::each_communicator(mesh.ranks(), list_communicator_groups(l), find_lane, add);
}

}  // namespace rankc::codegen
