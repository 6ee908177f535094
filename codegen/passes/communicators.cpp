// SPDX-License-Identifier: Apache-2.0
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
        const int first = rank_at(d, 0, r, t), last = rank_at(d, d.pp - 1, r, t);
        add("tied weights at " + where, {first, last}, {role::tied});
      }
      for (int p = 0; p + 1 < d.pp; ++p) {
        const int here = rank_at(d, p, r, t), next = rank_at(d, p + 1, r, t);
        const std::string edge = std::to_string(p) + " -> " + std::to_string(p + 1) + " at " + where;
        add("activations " + edge, {here, next}, {role::to_next, role::from_prev});
        add("gradients " + edge, {next, here}, {role::to_prev, role::from_next});
      }
    }
}

}  // namespace rankc::codegen
