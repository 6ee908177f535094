// SPDX-License-Identifier: Apache-2.0
// Questions that layers, rules and costs ask of axes: which axis a tensor-parallel region spans, which axes
// shard sequences or features, and how many ranks these have. The rows of the table answer them.
#pragma once
#include <rankc/mesh/axis_lists.hpp>

namespace rankc {

namespace detail {
/// A degree that is not known counts as 1: another rule refuses it.
constexpr int known(int degree) { return degree < 1 ? 1 : degree; }
}  // namespace detail

/// Whether the ranks along an axis compute a tensor-parallel region together: they shard the features of
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
/// The axis that shards the features of experts which are spread over ranks.
inline constexpr axis expert_region_axis = detail::find_expert_region_axis();

/// Whether a shard of the tokens along an axis is a part of each sequence; else it is whole sequences.
constexpr bool cuts_sequences(axis a) { return row(a).shares == part::positions || spans_region(a); }

/// Whether a layer's program on a rank depends on the degree of an axis: its shapes and its conversions do.
/// Sequences and layers are only a number of the same things.
constexpr bool shapes_layers(const axis_row& r) {
  return r.degree && r.shares != part::nothing && r.shares != part::layers && r.shares != part::sequences;
}

/// The ranks along axes for which `is_one` holds; a degree that is not known counts as 1.
constexpr long long ranks_along_each(const parallel_dims& d, auto is_one) {
  long long ranks = 1;
  for (const named_degree& a : all_degrees)
    if (is_one(a.along)) ranks *= detail::known(d.*a.degree);
  return ranks;
}

/// The ranks of a tensor-parallel region.
constexpr int region_ranks(const parallel_dims& d) { return detail::known(ranks_along(d, region_axis)); }
/// The ranks of a tensor-parallel region that shard its tokens outside of it.
constexpr int token_shards(const parallel_dims& d) { return d.sequence_parallel ? region_ranks(d) : 1; }

/// The ranks that have sequences of their own. Independent expert ranks share theirs.
constexpr long long batch_ranks(const parallel_dims& d) {
  return ranks_along_each(d, [](axis a) { return row(a).shares == part::sequences; });
}

/// Whether layers communicate for a purpose, forward and backward; else steps do, or stages.
constexpr bool is_within_layers(purpose p) {
  return p == purpose::keys_and_values || p == purpose::heads || p == purpose::tokens ||
         p == purpose::activations;
}

}  // namespace rankc
