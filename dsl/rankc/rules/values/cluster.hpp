// SPDX-License-Identifier: Apache-2.0
// RC110, RC112, RC121: the ranks of a plan on the nodes of a cluster.
#pragma once
#include <rankc/recipe/cluster.hpp>
#include <rankc/mesh/layout.hpp>
#include <rankc/rules/values/setting.hpp>

#include <array>
#include <utility>

namespace rankc {

/// True if some group of the axis has ranks on different nodes.
constexpr bool leaves_node(const layout& l, axis over, int ranks_per_node) {
  const group_shape groups = l.groups(over);
  if (groups.size() == 1) return false;
  // A group is inside one aligned block of this number of ranks.
  const int block = groups.begin()->size * groups.begin()->stride;
  if (ranks_per_node % block == 0) return false;
  for (int r = 0; r < l.ranks(); ++r)
    if (place_of(r, ranks_per_node).node != place_of(groups.first(r), ranks_per_node).node) return true;
  return false;
}

namespace detail {

constexpr long long places(const cluster& c) { return static_cast<long long>(c.nodes) * c.ranks_per_node; }

/// RC112: true if no group of the axis leaves a node. These groups exchange activations in every layer.
template <axis Over>
constexpr bool stays_in_node(const setting& s) {
  return has_layout(s.dims) && !leaves_node(layout(s.dims), Over, s.machines.ranks_per_node);
}
template <axis Over>
inline constexpr rule stays{
    112, stays_in_node<Over>,
    [](sentence& t, const setting& s) {
      t << name(Over) << "=" << s.dims.*row(Over).degree << " has groups that leave a node of "
        << s.machines.ranks_per_node << " ranks";
      if (s.machines.within_node > 0 && s.machines.between_nodes > 0)
        t << "; a rank sends " << static_cast<long long>(s.machines.between_nodes / 1e9)
          << " GB/s between nodes, " << static_cast<long long>(s.machines.within_node / 1e9)
          << " GB/s within one";
    },
    [](search& a) { a.vary(row(Over).degree); }, true};

inline constexpr rule cluster_rules[]{
    // RC110
    {110, [](const setting& s) { return s.dims.world <= places(s.machines); },
     [](sentence& t, const setting& s) {
       t << "world=" << s.dims.world << " is more than the cluster's " << s.machines.nodes << " nodes of "
         << s.machines.ranks_per_node << " ranks";
     },
     [](search& a) { a.vary(&parallel_dims::world).vary(&cluster::nodes); }},
};
consteval list_of<axis> list_node_axes() {
  list_of<axis> out;
  for (int i = n_axis_rows; i-- > 0;)
    if (axis_rows[i].stays_in_node) out.add(axis_rows[i].id);
  return out;
}
/// The axes whose groups should stay in a node, the innermost first.
inline constexpr list_of<axis> node_axes = list_node_axes();
inline constexpr auto node_rules = []<std::size_t... I>(std::index_sequence<I...>) {
  return std::array{stays<node_axes[I]>...};
}(std::make_index_sequence<node_axes.count>());

struct named_figure {
  std::string_view name;
  double cluster::* at;
};
inline constexpr named_figure cluster_figures[]{{"flops", &cluster::flops},
                                                {"within_node", &cluster::within_node},
                                                {"between_nodes", &cluster::between_nodes}};

/// RC121: the numbers of a cluster. Returns true if it has nodes and ranks.
constexpr bool check_figures(report& out, const cluster& c) {
  for (const auto& f : cluster_fields)
    if (c.*f.at < 1)
      refuse(out, 121) << "the cluster has " << f.name << "=" << c.*f.at << "; it has at least 1";
  if (c.memory < 0)
    refuse(out, 121) << "the cluster has memory=" << c.memory
                     << "; it is in bytes per rank, and 0 is not checked";
  for (const named_figure& f : cluster_figures)
    if (!(c.*f.at >= 0 && c.*f.at <= std::numeric_limits<double>::max()))
      refuse(out, 121) << "the cluster has " << f.name << "=" << c.*f.at
                       << "; it is finite and at least 0, and 0 is unknown";
  return c.nodes >= 1 && c.ranks_per_node >= 1;
}

}  // namespace detail

/// Appends the faults of dims, as written, on the cluster. Ranks fill the nodes in order.
/// Errors: RC110, RC121; the warning RC112.
constexpr void check_cluster(report& out, const cluster& machines, const parallel_dims& given) {
  if (!detail::check_figures(out, machines)) return;
  const setting s{.given = given, .machines = machines};
  check(out, s, detail::cluster_rules);
  if (has_layout(s.dims)) check(out, s, detail::node_rules);
}

}  // namespace rankc
