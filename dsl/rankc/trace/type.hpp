// SPDX-License-Identifier: Apache-2.0
// The type of a value: shape, element type and, for each mesh axis, its placement on the ranks of that axis.
// With four placements and their duals a missing reduction is a compile error.
#pragma once
#include <rankc/mesh/regions.hpp>

namespace rankc {

/// The elements of a sharded dim on a rank. contiguous: one of n contiguous parts. zig_zag: of 2 n parts one
/// from the front and its counterpart from the back, so that causal attention costs the same on all ranks.
enum class shard_order : unsigned char { contiguous, zig_zag };

/// A named dim of a tensor with its global size. A dim of heads is sharded by whole heads of `unit` elements.
/// Dims of different order or `passed` are different dims.
struct dim {
  std::string_view name;
  int size = 1;
  int unit = 1;
  std::string_view unit_name = "";
  shard_order order = shard_order::contiguous;
  int passed = 0;  // rows received around a ring: the number of ranks that they have passed
  constexpr bool operator==(const dim&) const = default;
  constexpr int count() const { return size / unit; }
};

/// The placement of a value on the ranks of one axis.
///   R  the same on every rank; the gradients of the ranks are partial sums (P)
///   I  the same on every rank, and so is the gradient
///   V  sharded along a dim, or different on each rank
///   P  a pending sum: the ranks have partial sums
/// Source: the dual pairs R-P, I-I, V-V are those of conjugate collectives in Megatron-LM (Shoeybi et al.
/// 2019).
struct placement {
  enum kind : unsigned char { R, I, V, P } k = I;
  signed char along = -1;  // V: the sharded dim
  signed char outer = -1;  // V in a ring of groups: the dim sharded over the groups
  constexpr bool operator==(const placement&) const = default;
};
inline constexpr placement R{placement::R}, I{placement::I}, P{placement::P};
constexpr placement V(int along, int outer = -1) {
  return {placement::V, static_cast<signed char>(along), static_cast<signed char>(outer)};
}
/// Ulysses and ring: heads (dim 1) are sharded inside a group, tokens (dim 0) over the groups.
inline constexpr placement heads_in_ring = V(1, 0);
inline constexpr placement varying{placement::V};  // different on each rank, not a shard of a dim

/// The element type of a value. `real` is the plan's precision. `wide` is f32 or wider, for statistics and
/// losses. `index` is int32. `e4m3` and `e5m2` are fp8 with one scale per tensor. `e4m3_rows` is fp8 with one
/// scale per row; its column-major copy has one scale per column.
enum class element : unsigned char { real, wide, index, e4m3, e5m2, e4m3_rows };
constexpr bool is_fp8(element e) { return e >= element::e4m3; }
/// The name of an fp8 type in generated text.
constexpr std::string_view fp8_name(element e) {
  if (e == element::e4m3) return "e4m3";
  return e == element::e5m2 ? "e5m2" : "e4m3_rows";
}

struct type {
  dim shape[2]{};
  signed char ndim = 0;
  element holds = element::real;
  bool pending_max = false;  // the pending reduction (P) is a maximum
  bool bad = false;          // the result of a refused op; it causes no further errors
  bool is_input = false;     // an input of the step, which has no gradient
  // The last entry is for axes on which no values are placed; RC210 refuses their use.
  placement at[n_axes + 1]{};
  constexpr bool operator==(const type&) const = default;
  constexpr placement& operator[](axis a) { return at[index(a)]; }
  constexpr const placement& operator[](axis a) const { return at[index(a)]; }
  constexpr int find(std::string_view dim_name) const {
    for (int i = 0; i < ndim; ++i)
      if (shape[i].name == dim_name) return i;
    return -1;
  }
  constexpr int last() const { return ndim - 1; }
};

/// The axis that shards a dim of a value with placement p over `over`. In a ring of groups it is one of the
/// two parts of `over`.
constexpr axis shared_over(placement p, int dim, axis over) {
  if (p.outer < 0) return over;
  return dim == p.outer ? axis::ring : axis::ulysses;
}
/// The number of shards of dim i of a value over an axis.
constexpr int shards_over(const type& t, int i, axis a, const parallel_dims& d) {
  const placement& p = t[a];
  const bool is_split = p.k == placement::V && (p.along == i || p.outer == i);
  return is_split ? ranks_along(d, shared_over(p, i, a)) : 1;
}

/// The placement of the gradient of a value with placement p.
constexpr placement cotangent(placement p) {
  if (p == R) return P;
  return p == P ? R : p;
}
constexpr type cotangent(type t) {
  for (placement& p : t.at) p = cotangent(p);
  return t;
}

}  // namespace rankc
