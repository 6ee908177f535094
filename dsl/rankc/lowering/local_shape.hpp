// SPDX-License-Identifier: Apache-2.0
// Sizes on one rank. They keep the names of their dims, from which text is generated later.
#pragma once
#include <rankc/trace/type.hpp>

#include <string_view>
#include <vector>

namespace rankc::lowering {

/// A dim on one rank: `count` units of `unit` elements.
struct local_dim {
  std::string_view name = "";  // name of the units; empty for a composed dim
  long long count = 1;         // units on this rank
  axis_set over{};  // axes with more than one rank that shard it, except those that shard sequences
  std::string_view unit_name = "";
  int unit = 1;
  int composed = -1;  // index of the layer's composed dim; -1: none
  constexpr long long width() const { return count * unit; }
  /// Visits the axes that shard it, outermost first.
  constexpr void each_axis(auto visit) const {
    for (const axis_row& r : axis_rows)
      if (over.has(r.id)) visit(r.id);
  }
};

/// A dim that lowering creates: rows of several parameters (packed), units of several dims (sum), or all
/// elements of a tensor (product).
struct composed_dim {
  enum kind : unsigned char { packed, sum, product } how = packed;
  std::vector<int> parameters{};
  std::vector<local_dim> dims{};
  // packed: the values of the trace that are its columns; empty if the model does not name them all.
  std::vector<int> named{};
};

struct local_shape {
  local_dim dims[2]{};
  int ndim = 0;
  local_dim stride{};  // the distance between two rows
  constexpr long long elements() const {
    long long n = 1;
    for (int d = 0; d < ndim; ++d) n *= dims[d].width();
    return n;
  }
};

/// The size of dim i on one rank.
constexpr local_dim local(const type& t, int i, const parallel_dims& d) {
  const dim& whole = t.shape[i];
  local_dim l{.name = whole.name, .count = whole.count(), .unit_name = whole.unit_name, .unit = whole.unit};
  for (axis a : axes) {
    const int shards = shards_over(t, i, a, d);
    if (shards == 1) continue;
    l.count /= shards;
    if (row(a).shares != part::sequences) l.over = l.over | shared_over(t[a], i, a);
  }
  return l;
}
constexpr local_shape local(const type& t, const parallel_dims& d) {
  local_shape s{.ndim = t.ndim};
  for (int i = 0; i < t.ndim; ++i) s.dims[i] = local(t, i, d);
  if (t.ndim > 1) s.stride = s.dims[1];
  return s;
}

/// True if an fp8 GEMM supports a size, or all sizes of a tensor: multiples of 16.
constexpr bool fits_fp8(long long size) { return size % 16 == 0; }
constexpr bool fits_fp8(const local_shape& s) {
  for (int i = 0; i < s.ndim; ++i)
    if (!fits_fp8(s.dims[i].width())) return false;
  return true;
}

/// The number of sequences of a microbatch on a data-parallel rank. A cp rank has some tokens of each.
constexpr int rows_of(const type& t, int seq, const parallel_dims& d) {
  return t.shape[0].size / static_cast<int>(batch_ranks(d)) / seq;
}

/// True if an op gets only the rank's chunks of each sequence: its first operand is sharded over cp.
constexpr bool takes_chunks(const auto& t, const auto& o, const parallel_dims& d) {
  return d.cp > 1 && o.kind->in_chunks && t.values[o.in[0]][axis::cp] == V(0);
}

/// The number of sequences, or of capacity groups, of an op on a rank.
constexpr int rows_of_op(const auto& t, const auto& o, const parallel_dims& d) {
  const type& x = t.values[o.in[0] < 0 ? o.out[0] : o.in[0]];
  if (takes_chunks(t, o, d)) return rows_of(x, o.with.seq, d);
  return o.kind->of_groups ? static_cast<int>(local(x, 0, d).width()) / o.with.seq : o.with.rows;
}

}  // namespace rankc::lowering
