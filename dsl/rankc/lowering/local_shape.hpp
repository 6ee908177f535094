// SPDX-License-Identifier: Apache-2.0
// Sizes on one rank, as numbers that know their names. Text is made of them when text is printed.
#pragma once
#include <rankc/trace/type.hpp>

#include <string_view>
#include <vector>

namespace rankc::lowering {

/// A dim on one rank: whole units of so many elements.
struct local_dim {
  std::string_view name = "";  // of the units on all ranks; a composed dim has none
  long long count = 1;         // units on this rank
  axis_set over{};             // axes of more than one rank that share them out; sequences go without saying
  std::string_view unit_name = "";
  int unit = 1;
  int composed = -1;  // which of the layer's composed dims it is
  constexpr long long width() const { return count * unit; }
  /// Visit the axes that share it out, outermost first.
  constexpr void each_axis(auto visit) const {
    for (const axis_row& r : axis_rows)
      if (over.has(r.id)) visit(r.id);
  }
};

/// A dim that lowering makes: the rows of parameters side by side, the units of dims side by side, or the
/// elements of a tensor in one piece.
struct composed_dim {
  enum kind : unsigned char { packed, sum, product } how = packed;
  std::vector<int> parameters{};
  std::vector<local_dim> dims{};
  std::vector<int>
      named{};  // packed: the values of the trace that are its columns, where the model names them all
};

struct local_shape {
  local_dim dims[2]{};
  int ndim = 0;
  local_dim stride{};  // a row and what lies between it and the next
  constexpr long long elements() const {
    long long n = 1;
    for (int d = 0; d < ndim; ++d) n *= dims[d].width();
    return n;
  }
};

/// Dim i of a type on a rank of dims whose degrees are known.
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

/// Whether fp8 products take a size, or each size of a tensor: multiples of 16.
constexpr bool fits_fp8(long long size) { return size % 16 == 0; }
constexpr bool fits_fp8(const local_shape& s) {
  for (int i = 0; i < s.ndim; ++i)
    if (!fits_fp8(s.dims[i].width())) return false;
  return true;
}

/// The sequences of a microbatch, some tokens of each of which a rank has.
constexpr int rows_of(const type& t, int seq, const parallel_dims& d) {
  return t.shape[0].size / static_cast<int>(batch_ranks(d)) / seq;
}

/// Whether an op has of each sequence the chunks of its rank: on its first operand's word.
constexpr bool takes_chunks(const auto& t, const auto& o, const parallel_dims& d) {
  return d.cp > 1 && o.kind->in_chunks && t.values[o.in[0]][axis::cp] == V(0);
}

/// The sequences, or groups of tokens, that an op takes on a rank.
constexpr int rows_of_op(const auto& t, const auto& o, const parallel_dims& d) {
  const type& x = t.values[o.in[0] < 0 ? o.out[0] : o.in[0]];
  if (takes_chunks(t, o, d)) return rows_of(x, o.with.seq, d);
  return o.kind->of_groups ? static_cast<int>(local(x, 0, d).width()) / o.with.seq : o.with.rows;
}

}  // namespace rankc::lowering
