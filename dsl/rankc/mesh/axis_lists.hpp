// SPDX-License-Identifier: Apache-2.0
// Lists of axes in the orders that other code needs, all made from the rows of the table.
#pragma once
#include <rankc/mesh/axes.hpp>

#include <cstddef>

namespace rankc {

inline constexpr int n_axis_rows = static_cast<int>(sizeof axis_rows / sizeof *axis_rows);

struct named_degree {
  std::string_view name;
  int parallel_dims::* degree;
  axis along;
};

namespace detail {

template <class T>
struct list_of {
  T of[n_axis_rows]{};
  std::size_t count = 0;
  constexpr void add(const T& x) { of[count++] = x; }
  constexpr const T* begin() const { return of; }
  constexpr const T* end() const { return of + count; }
  constexpr std::size_t size() const { return count; }
  constexpr const T& operator[](std::size_t i) const { return of[i]; }
};

struct lists_of_axes {
  std::string_view names[n_axis_rows];
  axis_set parts[n_axis_rows];  // by axis: the axes of views that it joins, or itself
  axis_set dense;               // the axes of the dense view in every layout
  list_of<axis> placed, listed, joined;
  list_of<named_degree> degrees, written;
};

/// Clang evaluates constexpr loops slowly, so the rows are visited once and the later loops use the collected
/// lists.
consteval lists_of_axes list_axes() {
  lists_of_axes l;
  list_of<axis> either;
  list_of<named_degree> declared;
  for (const axis_row& r : axis_rows) {
    const int at = static_cast<int>(r.id);
    const bool joins = r.joins != axis_set{};
    l.names[at] = r.name;
    l.parts[at] = joins ? r.joins : r.id;
    if (r.dense == seen::always) l.dense = l.dense | r.id;
    if (r.places) l.placed.add(r.id);
    if (joins) l.joined.add(r.id);
    if (r.degree || !joins) either.add(r.id);
    if (r.degree) declared.add({r.name, r.degree, r.id});
  }
  for (const named_degree& a : declared)
    if (row(a.along).joins != axis_set{})
      for (axis j : l.joined) {
        axis_set& parts = l.parts[static_cast<int>(j)];
        if (parts.has(a.along)) parts = parts.without(a.along) | row(a.along).joins;
      }
  // An axis of replicas is part of each axis that joins dp_replicate.
  for (axis j : l.joined)
    if (axis_set& parts = l.parts[static_cast<int>(j)]; parts.has(axis::dp_replicate))
      for (const axis_row& r : axis_rows)
        if (holds_replicas(r)) parts = parts | r.id;
  for (const bool dense : {true, false})
    for (axis a : either)
      if (l.dense.has(l.parts[static_cast<int>(a)]) == dense) l.listed.add(a);
  for (const fills what : {fills::world, fills::experts, fills::cp})
    for (const named_degree& a : declared)
      if (row(a.along).fills == what) l.degrees.add(a);
  for (const bool placed : {true, false})
    for (const named_degree& a : l.degrees)
      if (row(a.along).places == placed) l.written.add(a);
  return l;
}
inline constexpr lists_of_axes lists = list_axes();

}  // namespace detail

inline constexpr const auto& axis_names = detail::lists.names;

/// The mesh axes on which values are placed. If several shard one dim, they do so in this order, outermost
/// first.
inline constexpr int n_axes = static_cast<int>(detail::lists.placed.count);
namespace detail {
struct placed_axes {
  axis of[n_axes]{};
  int index[n_axis_rows]{};
};
inline constexpr placed_axes placed = [] {
  placed_axes p;
  for (int& i : p.index) i = n_axes;
  for (int i = 0; i < n_axes; ++i) p.index[static_cast<int>(p.of[i] = lists.placed.of[i])] = i;
  return p;
}();
}  // namespace detail
inline constexpr const axis (&axes)[n_axes] = detail::placed.of;
/// The index of an axis in `axes`; n_axes if no value is placed on it.
constexpr int index(axis a) { return detail::placed.index[static_cast<int>(a)]; }

/// The axes of views that an axis joins, or the axis itself.
constexpr axis_set parts_of(axis a) { return detail::lists.parts[static_cast<int>(a)]; }
/// True if the dense view has the axis, or all axes that it joins. Otherwise it belongs to the expert view.
constexpr bool is_dense(axis a) { return detail::lists.dense.has(parts_of(a)); }

/// The axes of both views, and those that users declare: the dense ones first, outermost first.
inline constexpr const auto& listed_axes = detail::lists.listed;
/// The joined axes.
inline constexpr const auto& joined_axes = detail::lists.joined;

/// All degrees. Those whose product is the world come first, outermost first; ep is one of them if experts
/// are independent.
inline constexpr const auto& all_degrees = detail::lists.degrees;
/// All degrees in the order in which users write them. Degrees of axes on which values are placed come first.
inline constexpr const auto& written_degrees = detail::lists.written;

}  // namespace rankc
