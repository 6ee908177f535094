// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "messages.hpp"
#include "passes.hpp"

namespace rankc::codegen {

namespace {
/// A directed pair of pipeline ranks; two ranks have one for activations and one for gradients.
struct pipeline_edge {
  int from, to;
  bool to_next;
  std::string carries;
};
std::vector<pipeline_edge> edges_of(const action_table& t) {
  std::vector<pipeline_edge> edges;
  auto carry = [&](int from_stage, int to_stage, const std::string& what) {
    const int from = t.rank_of_stage[from_stage], to = t.rank_of_stage[to_stage];
    if (from == to) return;
    const bool to_next = goes_to_next(from, to, t.ranks(), to_stage < from_stage);
    const auto known = std::find_if(edges.begin(), edges.end(), [&](const auto& e) { return e.from == from && e.to_next == to_next; });
    if (known == edges.end()) edges.push_back({from, to, to_next, what});
    else if (known->carries.find(what) == std::string::npos) known->carries += " and " + what;
  };
  for (int s = 0; s + 1 < t.stages(); ++s) {
    carry(s, s + 1, "activations");
    carry(s + 1, s, "gradients");
  }
  return edges;
}

std::string at(std::initializer_list<std::pair<const char*, int>> where) {
  std::string s;
  for (auto [axis, i] : where) s += (s.empty() ? "" : " ") + std::string(axis) + " " + std::to_string(i);
  return s;
}
}  // namespace

void make_communicators(lowered& l) {
  const parallel_dims& d = l.plan->dims;
  const int dp = d.dp_replicate;
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
    for (int r = 0; r < dp; ++r)
      add("tp at " + at({{"pp", p}, {"dp", r}}), line(d.tp, [&](int t) { return rank_at(d, p, r, t); }), {role::tp});
  for (int p = 0; p < d.pp; ++p)
    for (int t = 0; t < d.tp; ++t)
      add("dp at " + at({{"pp", p}, {"tp", t}}), line(dp, [&](int r) { return rank_at(d, p, r, t); }), {role::dp});
  for (int r = 0; r < dp; ++r)
    for (int t = 0; t < d.tp; ++t) {
      const std::string where = at({{"dp", r}, {"tp", t}});
      add("pp at " + where, line(d.pp, [&](int p) { return rank_at(d, p, r, t); }), {role::pp});
      if (!l.shared.empty()) {
        const auto& at_rank = l.plan->actions.rank_of_stage;
        const int first = rank_at(d, at_rank.front(), r, t), last = rank_at(d, at_rank.back(), r, t);
        add("tied weights at " + where, {first, last}, {role::tied});
      }
      for (const pipeline_edge& e : edges_of(l.plan->actions)) {
        const std::string name = e.carries + " " + std::to_string(e.from) + " -> " + std::to_string(e.to) + " at " + where;
        const std::vector<int> ranks{rank_at(d, e.from, r, t), rank_at(d, e.to, r, t)};
        if (e.to_next) add(name, ranks, {role::to_next, role::from_prev});
        else add(name, ranks, {role::to_prev, role::from_next});
      }
    }
}

}  // namespace rankc::codegen
