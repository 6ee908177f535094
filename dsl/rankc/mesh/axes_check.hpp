// SPDX-License-Identifier: Apache-2.0
// Compile-time checks of a table of axes.
#pragma once
#include <rankc/mesh/axis_lists.hpp>
#include <rankc/base/diagnostic.hpp>

#include <span>

namespace rankc {

namespace detail {

/// True if the enum has this value.
/// Source: the text of g++ and clang for a value without a name, "(rankc::axis)26".
template <axis A>
consteval bool is_enumerator() {
  return std::string_view(__PRETTY_FUNCTION__).find("A = (") == std::string_view::npos;
}

struct an_int {
  template <class T>
    requires std::same_as<T, int>
  operator T() const;
};
/// The number of leading int members of an aggregate.
template <class T, class... Int>
consteval int count_ints() {
  if constexpr (requires { T{Int{}..., an_int{}}; }) return count_ints<T, Int..., an_int>();
  else return static_cast<int>(sizeof...(Int));
}

constexpr const axis_row* find_row(std::span<const axis_row> rows, axis a) {
  for (const axis_row& r : rows)
    if (r.id == a) return &r;
  return nullptr;
}

/// The fault of a single row; empty without one.
constexpr std::string_view fault_of(const axis_row& r) {
  const bool joins = r.joins != axis_set{}, in_view = r.dense != seen::never || r.expert != seen::never;
  if (r.name.empty()) return "has no name";
  if (joins && in_view) return "joins others and is in a view; it is one or the other";
  if (!joins && !in_view) return "is in no view and joins nothing";
  if (!joins && !r.size && !r.degree) return "is in a view without a size or a degree";
  if (r.degree && r.help.empty()) return "is declared by users without a text that helps them";
  if (r.places && !r.degree) return "has values placed on it without a degree";
  if (r.lowered != lowered_values::nothing && !r.degree) return "is lowered without a degree";
  if (r.stays_in_node && !r.degree) return "stays in a node without a degree";
  if (r.lowered == lowered_values::tokens && !r.places)
    return "is lowered for tokens, which are not placed on it";
  if (r.dense == seen::always && r.expert == seen::never && r.id < axis::dp_replicate)
    return "is outside of dp_replicate and in the dense view alone; experts have its ranks too";
  return {};
}

}  // namespace detail

/// The first fault of a table, as a sentence; empty without one. `declared` is the number of degrees that
/// users declare.
constexpr sentence check_axes(std::span<const axis_row> rows, int declared) {
  sentence s;
  const auto fault = [&](const axis_row& r, auto... what) -> sentence& {
    return ((s << "axis '" << r.name << "' ") << ... << what);
  };
  int degrees = 0;
  const axis_row* region = nullptr;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const axis_row& r = rows[i];
    if (static_cast<std::size_t>(r.id) != i)
      return fault(r, "stands in row ", i,
                   ", which is that of another; rows are in the order of the enum, one each");
    if (const std::string_view what = detail::fault_of(r); !what.empty()) return fault(r, what);
    degrees += r.degree != nullptr;
    const bool spans_region = r.shares == part::features && r.dense == seen::always;
    if (spans_region && r.lowered == lowered_values::all) {
      if (region)
        return fault(r, "is lowered and shards the features of dense layers, as '", region->name,
                     "' does; tensor-parallel regions span one axis");
      region = &r;
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (rows[j].name == r.name) return fault(r, "has the name of another");
      if (r.degree && rows[j].degree == r.degree) return fault(r, "has the degree of '", rows[j].name, "'");
      if (r.letter && rows[j].letter == r.letter) return fault(r, "has the letter of '", rows[j].name, "'");
    }
    for (const axis_row& x : rows)
      if (r.joins.has(x.id) && x.joins != axis_set{} && !x.degree)
        return fault(r, "joins '", x.name, "', which joins others: name those");
  }
  if (degrees != declared)
    s << "parallel_dims has " << declared << " degrees, and " << degrees << " have a row";
  return s;
}

namespace detail {
inline constexpr int declared_degrees = count_ints<parallel_dims>() - 1;  // without the world
inline constexpr auto axes_fault = [] {
  constexpr std::size_t size = check_axes(axis_rows, declared_degrees).view().size();
  because<size> b;
  const sentence s = check_axes(axis_rows, declared_degrees);
  for (std::size_t i = 0; i < size; ++i) b.text[i] = s.view()[i];
  b.text[size] = '\0';
  return b;
}();
static_assert(accepted<refused<axes_fault>>);
static_assert(!is_enumerator<static_cast<axis>(n_axis_rows)>(), "an axis has no row in axis_rows");
}  // namespace detail

}  // namespace rankc
