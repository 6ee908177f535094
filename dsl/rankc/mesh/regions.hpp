// SPDX-License-Identifier: Apache-2.0
// Facts about axes that layers, rules and costs need: the axis of tensor-parallel regions, the axes that
// shard sequences or features, and their numbers of ranks. All are derived from the rows of the table.
#pragma once
#include <rankc/mesh/axis_lists.hpp>

namespace rankc {

namespace detail {
/// An unknown degree counts as 1, because another rule refuses it.
constexpr int at_least_one(int degree) { return degree < 1 ? 1 : degree; }
}  // namespace detail

/// True if the ranks along an axis compute a tensor-parallel region together, that is, shard the features of
/// dense layers.
constexpr bool spans_region(axis a) { return row(a).shares == part::features && is_dense(a); }

namespace detail {
consteval axis find_region_axis() {
  for (const axis_row& r : axis_rows)
    if (spans_region(r.id) && r.lowered == lowered_values::all) return r.id;
  throw "no axis that is lowered shards the features of dense layers";
}
consteval axis find_expert_region_axis() {
  for (const axis_row& r : axis_rows)
    if (r.shares == part::features && !is_dense(r.id)) return r.id;
  throw "no axis shards the features of experts";
}
}  // namespace detail

/// The axis of tensor-parallel regions. Layers enter and leave a region by conversions over it; between
/// regions, `sequence_parallel` shards the tokens along it.
inline constexpr axis region_axis = detail::find_region_axis();
/// The axis that shards the features of experts, which are themselves sharded over ranks.
inline constexpr axis expert_region_axis = detail::find_expert_region_axis();

/// True if a shard of the tokens along an axis is a part of each sequence; false if it is whole sequences.
constexpr bool cuts_sequences(axis a) { return row(a).shares == part::positions || spans_region(a); }

/// True if a layer's program on a rank depends on the degree of an axis, through its shapes and conversions.
/// Degrees that shard sequences or layers only change the number of equal programs.
constexpr bool shapes_layers(const axis_row& r) {
  return r.degree && r.shares != part::nothing && r.shares != part::layers && r.shares != part::sequences;
}

/// The number of ranks along all axes that satisfy `is_one`. An unknown degree counts as 1.
constexpr long long ranks_along_each(const parallel_dims& d, auto is_one) {
  long long ranks = 1;
  for (const named_degree& a : all_degrees)
    if (is_one(a.along)) ranks *= detail::at_least_one(d.*a.degree);
  return ranks;
}

/// The number of ranks of a tensor-parallel region.
constexpr int region_ranks(const parallel_dims& d) {
  return detail::at_least_one(ranks_along(d, region_axis));
}
/// The number of ranks of a tensor-parallel region that shard its tokens outside the region.
constexpr int token_shards(const parallel_dims& d) { return d.sequence_parallel ? region_ranks(d) : 1; }

/// The number of ranks that have their own sequences. Independent expert ranks share theirs.
constexpr long long batch_ranks(const parallel_dims& d) {
  return ranks_along_each(d, [](axis a) { return row(a).shares == part::sequences; });
}

/// True if layers communicate for this purpose, in forward and backward. Otherwise steps or stages do.
constexpr bool is_within_layers(purpose p) {
  return p == purpose::keys_and_values || p == purpose::heads || p == purpose::tokens ||
         p == purpose::activations;
}

}  // namespace rankc
