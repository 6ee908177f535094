// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "edges.hpp"
#include "passes.hpp"

namespace rankc::codegen {

namespace {

std::string at(std::initializer_list<std::pair<const char*, int>> where) {
  std::string s;
  for (auto [axis, i] : where) s += (s.empty() ? "" : " ") + std::string(axis) + " " + std::to_string(i);
  return s;
}
}  // namespace

void make_communicators(lowered& l) {
  const parallel_dims& d = l.plan->dims;
  const int dp = d.dp_replicate;
  const action_table& actions = l.plan->actions;
  const std::vector<pipeline_edge> edges = edges_of(actions);
  l.communicator_of.assign(d.world, {});
  for (auto& of : l.communicator_of) of.fill(-1);
  auto add = [&](std::string name, std::vector<int> ranks, std::initializer_list<role> roles_of_each) {
    if (ranks.size() < 2) return;
    const int index = static_cast<int>(l.communicators.size());
    auto roles = roles_of_each.begin();
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      l.communicator_of[ranks[i]][static_cast<int>(*roles)] = index;
      if (roles_of_each.size() > 1) ++roles;
    }
    l.communicators.push_back({std::move(name), std::move(ranks)});
  };
  auto line = [&](int count, auto member) {
    std::vector<int> ranks;
    for (int i = 0; i < count; ++i) ranks.push_back(member(i));
    return ranks;
  };
  for (int p = 0; p < d.pp; ++p)
    for (int r = 0; r < dp; ++r) {
      const std::string where = at({{"pp", p}, {"dp", r}});
      const std::vector<int> ranks = line(d.tp, [&](int t) { return rank_at(d, p, r, t); });
      add("tp at " + where, ranks, {role::tp});
      if (l.ranks[p].overlaps) add("tp of what overlaps at " + where, ranks, {role::tp_beside});
    }
  for (int p = 0; p < d.pp; ++p)
    for (int t = 0; t < d.tp; ++t)
      add("dp at " + at({{"pp", p}, {"tp", t}}), line(dp, [&](int r) { return rank_at(d, p, r, t); }), {role::dp});
  for (int r = 0; r < dp; ++r)
    for (int t = 0; t < d.tp; ++t) {
      const std::string where = at({{"dp", r}, {"tp", t}});
      add("pp at " + where, line(d.pp, [&](int p) { return rank_at(d, p, r, t); }), {role::pp});
      for (const auto& pair : l.tied)
        add((actions.bidirectional() ? "copies of ranks " + std::to_string(pair[0]) + " and " + std::to_string(pair[1]) : "tied weights") +
                " at " + where,
            line(2, [&](int i) { return rank_at(d, pair[i], r, t); }), {role::tied});
      for (const pipeline_edge& e : edges)
        add(e.carries + " " + std::to_string(e.from) + " -> " + std::to_string(e.to) + " at " + where,
            {rank_at(d, e.from, r, t), rank_at(d, e.to, r, t)}, {role_of(e.out), role_of(e.in)});
    }
}

}  // namespace rankc::codegen
