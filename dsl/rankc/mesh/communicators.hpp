// SPDX-License-Identifier: Apache-2.0
// The communicators that a layout needs: one for every distinct shape of groups with more than one rank. All
// ranks make them in the same order. Each is one split of the world (colour `groups.first(rank)`, key
// `groups.place(rank)`).
#pragma once
#include <rankc/mesh/layout.hpp>

#include <algorithm>

namespace rankc {

/// A communication over the groups of an axis, and its purpose.
struct communicator_purpose {
  axis over;
  purpose as;
  std::string_view what;
};

namespace detail {
constexpr communicator_purpose purpose_of(const axis_row& r) {
  return {r.id, r.carries.purpose, r.carries.what};
}
consteval list_of<communicator_purpose> list_purposes() {
  list_of<communicator_purpose> out;
  for (const axis_row& r : axis_rows)
    if (r.carries.purpose != purpose::nothing && r.carries.purpose != purpose::tied) out.add(purpose_of(r));
  std::sort(out.of, out.of + out.count, [](const communicator_purpose& a, const communicator_purpose& b) {
    return is_dense(a.over) != is_dense(b.over) ? is_dense(a.over) : a.as < b.as;
  });
  return out;
}
}  // namespace detail

/// The communications that need communicators, in the order in which these are made: by purpose, those of
/// experts last.
inline constexpr auto communicator_purposes = detail::list_purposes();

struct planned_communicator {
  group_shape groups;
  std::vector<communicator_purpose> serves;
};

/// The communicators of a layout. Equal groups of two views share one. With `tied_embeddings` the two ends of
/// the pipeline have one. Communicators of experts are made only if `experts` is set.
constexpr std::vector<planned_communicator> plan_communicators(const layout& l, bool experts,
                                                               bool tied_embeddings) {
  std::vector<planned_communicator> out;
  auto add = [&](const communicator_purpose& c) {
    const group_shape g = l.groups(c.over);
    if (g.size() == 1) return;
    for (planned_communicator& p : out)
      if (p.groups == g) {
        p.serves.push_back(c);
        return;
      }
    out.push_back({g, {c}});
  };
  for (const communicator_purpose& c : communicator_purposes)
    if (experts || is_dense(c.over)) add(c);
  if (tied_embeddings) add(detail::purpose_of(row(axis::embedding)));
  return out;
}

/// The number of communications of a step over one communicator's groups, except losses. Each uses a separate
/// communicator, because it runs on a separate lane.
constexpr int count_purposes(const planned_communicator& c) {
  return static_cast<int>(
      std::count_if(c.serves.begin(), c.serves.end(), [](const auto& s) { return s.as != purpose::loss; }));
}

/// The communicators of a step, with those of experts if they are sharded over ranks. Losses use no separate
/// communicator, because they are summed along one axis after the other. Replicas of experts use none,
/// because they are replicas of all weights.
constexpr std::vector<planned_communicator> communicators_of_step(const layout& l) {
  std::vector<planned_communicator> all = plan_communicators(l, l.dims().ep > 1, false);
  for (planned_communicator& c : all)
    if (c.serves.size() > 1)
      std::erase_if(c.serves, [](const communicator_purpose& p) { return p.over == axis::expert_replicas; });
  std::erase_if(all, [](const planned_communicator& c) { return count_purposes(c) == 0; });
  return all;
}

/// The number of calls that make them, if every group is a communicator.
constexpr int count_groups(const layout& l, const std::vector<planned_communicator>& plan) {
  int n = 0;
  for (const planned_communicator& p : plan) n += p.groups.count(l.ranks());
  return n;
}

}  // namespace rankc
