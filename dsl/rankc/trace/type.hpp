// SPDX-License-Identifier: Apache-2.0
// The type of a value in a model: shape, element and, per mesh axis, how the ranks of that axis hold it. The
// four placements and their duals are the algebra that makes a missing reduction a compile error.
#pragma once
#include <rankc/mesh/regions.hpp>

namespace rankc {

/// Which elements of a sharded dim a rank has: the next of as many parts as there are ranks, or, of twice as
/// many, one from the front and its counterpart from the back, so that causal attention costs all ranks
/// alike.
enum class shard_order : unsigned char { contiguous, zig_zag };

/// A named dim of a tensor with its global size. A dim of heads is split by whole heads: `unit` elements
/// each. Dims of two orders are two dims, and so are a rank's own rows and those that were handed on to it.
struct dim {
  std::string_view name;
  int size = 1;
  int unit = 1;
  std::string_view unit_name = "";
  shard_order order = shard_order::contiguous;
  int passed = 0;  // of rows that were handed on around a ring: how many ranks they have come
  constexpr bool operator==(const dim&) const = default;
  constexpr int count() const { return size / unit; }
};

/// R: the same on every rank, each rank's gradient is a part (P). I: the same, and so is its gradient.
/// V: sharded along a dim, or different on each rank. P: a sum over the ranks that has not been taken.
/// Source: the dual pairs R-P, I-I, V-V are those of conjugate collectives in Megatron-LM (Shoeybi et al.
/// 2019).
struct placement {
  enum kind : unsigned char { R, I, V, P } k = I;
  signed char along = -1;  // V only: the dim
  signed char outer =
      -1;  // V in a ring of groups, whose members it is sharded over along that dim: the groups' dim
  constexpr bool operator==(const placement&) const = default;
};
inline constexpr placement R{placement::R}, I{placement::I}, P{placement::P};
constexpr placement V(int along, int outer = -1) {
  return {placement::V, static_cast<signed char>(along), static_cast<signed char>(outer)};
}
/// Of heads of all tokens of a group, in a ring of groups that share out the tokens.
inline constexpr placement heads_in_ring = V(1, 0);
inline constexpr placement varying{placement::V};  // different on each rank, and no dim says how

/// `real` is the plan's precision; `wide` is f32 or better (statistics, losses); `index` is int32; `e4m3` and
/// `e5m2` are of eight bits, with one scale for the tensor; `e4m3_rows` has one for each row, and for each
/// column of what lies by columns.
enum class element : unsigned char { real, wide, index, e4m3, e5m2, e4m3_rows };
constexpr bool is_fp8(element e) { return e >= element::e4m3; }
/// The name of the type in generated text.
constexpr std::string_view fp8_name(element e) {
  if (e == element::e4m3) return "e4m3";
  return e == element::e5m2 ? "e5m2" : "e4m3_rows";
}

struct type {
  dim shape[2]{};
  signed char ndim = 0;
  element holds = element::real;
  bool pending_max = false;    // a P whose outstanding reduction is a maximum
  bool bad = false;            // the result of a refused op: nothing more is said about it
  placement at[n_axes + 1]{};  // the last is of any axis that no value is placed on: RC210 refuses its use
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

/// The axis whose ranks share out a dim of a value with placement p on `over`. It is `over`, or a part of it
/// in a ring of groups.
constexpr axis shared_over(placement p, int dim, axis over) {
  if (p.outer < 0) return over;
  return dim == p.outer ? axis::ring : axis::ulysses;
}
/// The shards that dim i of a value is split into over an axis.
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
