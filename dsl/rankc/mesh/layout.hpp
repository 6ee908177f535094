// SPDX-License-Identifier: Apache-2.0
// The layout of legal dims: the dense and the expert view of the ranks, coordinates in both, and the groups
// of every axis, joined ones too. Every axis is defined; its size may be 1.
#pragma once
#include <rankc/mesh/dims.hpp>
#include <rankc/mesh/group.hpp>

namespace rankc {

/// A rank's index along one axis. It does not convert to a number; only a layout turns it into a rank.
template <mesh_axis Axis>
struct along {
  int index = 0;
  constexpr along() = default;
  explicit constexpr along(int i) : index(i) {}
  constexpr bool operator==(const along&) const = default;
};

/// A rank's indices along the axes of one view; 0 along an axis that the view does not have.
template <seen axis_row::* View>
class coordinates {
 public:
  constexpr coordinates() = default;
  template <axis... Axes>
    requires((row(Axes).*View != seen::never) && ...)
  constexpr coordinates(along<Axes>... i) {
    ((index_[static_cast<std::size_t>(Axes)] = i.index), ...);
  }
  constexpr coordinates(const view& v, int rank) {
    for (const axis_extent& x : v) index_[static_cast<std::size_t>(x.axis)] = x.index_of(rank);
  }
  constexpr int operator[](axis a) const { return index_[static_cast<std::size_t>(a)]; }
  constexpr bool operator==(const coordinates&) const = default;

 private:
  std::array<int, n_axis_rows> index_{};
};
using coord = coordinates<&axis_row::dense>;
using expert_coord = coordinates<&axis_row::expert>;

namespace detail {
/// A view of resolved dims: its axes in the order of their rows.
constexpr view make_view(const parallel_dims& d, seen axis_row::* of) {
  axis_extent sizes[n_axis_rows]{};
  int n = 0;
  for (const axis_row& r : axis_rows)
    if (r.*of == seen::always || (r.*of == seen::if_independent && is_independent(d)))
      sizes[n++] = {r.id, ranks_along(d, r.id)};
  return {sizes, n};
}
constexpr int rank_at(const view& v, const auto& at) {
  int rank = 0;
  for (const axis_extent& x : v) rank += at[x.axis] * x.stride;
  return rank;
}
}  // namespace detail

/// The views, coordinates and groups of resolved dims that `check_dims` accepts.
class layout {
 public:
  explicit constexpr layout(const parallel_dims& d)
      : dims_(d),
        dense_(detail::make_view(d, &axis_row::dense)),
        expert_(detail::make_view(d, &axis_row::expert)) {}

  constexpr const parallel_dims& dims() const { return dims_; }
  constexpr int ranks() const { return dense_.span(); }
  constexpr const view& dense() const { return dense_; }
  constexpr const view& expert() const { return expert_; }

  constexpr group_shape groups(axis a) const {
    const view& v = is_dense(a) ? dense_ : expert_;
    axis_set across = parts_of(a);
    const cp_joins cp = row(a).cp;
    if (cp != cp_joins::always && (cp == cp_joins::if_sharding) != (dims_.cp_weights == cp_weights::shard))
      across = across.without(parts_of(axis::cp));
    const group_shape whole(v, across);
    return row(a).ends ? group_shape::ends(whole.begin()->size, whole.begin()->stride) : whole;
  }

  constexpr coord at(int rank) const { return {dense_, rank}; }
  constexpr expert_coord expert_at(int rank) const { return {expert_, rank}; }
  /// The rank at a coordinate.
  constexpr int flat(const coord& c) const { return detail::rank_at(dense_, c); }
  constexpr int flat(const expert_coord& c) const { return detail::rank_at(expert_, c); }

 private:
  parallel_dims dims_;
  view dense_, expert_;
};

/// A rank's node and GPU in a cluster whose nodes have `per_node` ranks, filled in order.
struct node_index {
  int index = 0;
  constexpr bool operator==(const node_index&) const = default;
};
struct gpu_index {
  int index = 0;
  constexpr bool operator==(const gpu_index&) const = default;
};
struct machine_coord {
  node_index node;
  gpu_index gpu;
  constexpr bool operator==(const machine_coord&) const = default;
};
constexpr machine_coord place_of(int rank, int per_node) { return {{rank / per_node}, {rank % per_node}}; }

}  // namespace rankc
