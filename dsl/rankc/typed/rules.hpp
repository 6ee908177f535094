// SPDX-License-Identifier: Apache-2.0
// The typing rules, axis by axis: from the placements of an op's operands to the placement of its result, or a
// complaint. Backward ops go through rules of the same kind, so that a wrong dual is found as well.
#pragma once
#include <rankc/typed/trace.hpp>

namespace rankc::rules {

inline constexpr std::string_view reduce_first = "reduce it first (all_reduce, reduce_scatter)";
inline constexpr std::string_view any_but_pending = "R, I or V";

constexpr bool same_shape(const type& a, const type& b) {
  return a.ndim == b.ndim && a.shape[0] == b.shape[0] && a.shape[1] == b.shape[1];
}

/// An elementwise function of one value. A linear one may meet a pending sum.
constexpr auto elementwise(bool linear) {
  return [linear](complaint& c, types in, type* out) {
    out[0] = in[0];
    for (axis a : axes)
      if (in[0][a] == P && !linear) c.found(a, "the value", in[0], any_but_pending, reduce_first);
  };
}

/// The placement of a + b over one axis.
constexpr placement sum_over(complaint& c, axis a, const type& x, const type& y) {
  const placement p = x[a], q = y[a];
  if (p == q) return p;
  if (p == P || q == P)
    return c.found(a, p == P ? "the left operand" : "the right operand", p == P ? x : y,
                   "R, I or V, or two pending sums", reduce_first);
  const bool left = p == I || q == I ? p == I : p == R;
  return c.found(a, left ? "the left operand" : "the right operand", left ? x : y, "what the other operand is",
                 p == I || q == I ? "use the matching conversion (all_reduce gives I, reduce_scatter gives V)"
                                  : "bring both to one placement");
}
constexpr void sum(complaint& c, types in, type* out) {
  out[0] = in[0];
  for (axis a : axes) out[0][a] = sum_over(c, a, in[0], in[1]);
  if (!c.said && !same_shape(in[0], in[1]))
    c.begin() << "the operands have different shapes: (" << in[0].shape[0].name << ", " << in[0].shape[1].name << ") and ("
              << in[1].shape[0].name << ", " << in[1].shape[1].name << ")";
}

/// The placement of an expression that is linear in `g` and any function of the values in `held`: what backward
/// kernels are. A pending sum passes through, unless what is held is itself pending.
constexpr placement linear_in(complaint& c, axis a, const type& g, types held) {
  for (const type& x : held) {
    if (x[a] == P) return c.found(a, "a saved value", x, any_but_pending, reduce_first);
    if (x[a].k != g[a].k && !(x[a] == R && g[a] == P))
      return c.found(a, "the gradient", g, "what belongs to the saved value's placement", "check the op's dual");
  }
  return g[a];
}
/// Result 0 has the shape of the last input, the gradient; the others are held.
constexpr void gradient_of_elementwise(complaint& c, types in, type* out) {
  out[0] = in.back();
  for (axis a : axes) out[0][a] = linear_in(c, a, in.back(), in.first(in.size() - 1));
}

/// y[tokens, out] = x[tokens, in] w[out, in]^T
constexpr type linear(complaint& c, const type& x, const type& w, int w_in = 1) {
  type y = x;
  const int last = x.last(), w_out = 1 - w_in;
  y.shape[last] = w.shape[w_out];
  if (x.shape[last] != w.shape[w_in]) {
    if (!c.said)
      c.begin() << "the value's last dim is " << x.shape[last].name << " (" << x.shape[last].size << "); expected "
                << w.shape[w_in].name << " (" << w.shape[w_in].size << ")";
    return y;
  }
  for (axis a : axes) {
    const placement p = x[a], q = w[a];
    const bool by_features = p == V(last);
    if (q == V(w_in)) {
      y[a] = by_features ? P
                         : c.found(a, "the value", x, "sharded like the weight's input features",
                                   p == P ? reduce_first : "feed it a column-parallel result");
    } else if (q == V(w_out)) {
      y[a] = p == R ? V(last)
                    : c.found(a, "the value", x, "replicated (R), the weight being sharded along its output features",
                              p == P   ? reduce_first
                              : p == I ? "convert it first (replicate: its gradient is then all-reduced)"
                                       : "all_gather it first");
    } else if (by_features) {
      c.found(a, "the value", x, "the weight to be sharded along it too", "all_gather it, or shard the weight");
    }
  }
  return y;
}

/// The gradient of w[out, in] from x[tokens, in] and dy[tokens, out]: a sum over tokens.
constexpr placement outer(complaint& c, const type& x, const type& g, axis a) {
  const placement p = x[a], q = g[a];
  const int last = x.last();
  if (p == R && q == V(last)) return V(0);
  if (p == V(last) && q == R) return V(1);
  if (p.k == placement::V && p == q && p.along != last) return P;
  if (p == R && q == P) return P;
  if (p == I && q == I) return I;
  return c.found(a, "the gradient", g, "what belongs to the saved value's placement", "check the op's dual");
}

/// The gradient of a per-feature weight: a sum of dy, or of dy times something held, over tokens.
constexpr placement over_tokens(const type& g, axis a) {
  return g[a].k != placement::V ? g[a] : g[a].along == g.last() ? V(0) : P;
}

/// A row is normalised as a whole; gain and shift are the same on every rank.
constexpr void norm(complaint& c, types in, type* out) {
  const type& x = in[0];
  out[0] = out[1] = x;
  out[1].shape[1] = dim{"statistics", 2};
  out[1].holds = element::wide;
  for (axis a : axes) {
    if (x[a] == P) c.found(a, "the value", x, any_but_pending, reduce_first);
    if (x[a] == V(x.last()))
      c.found(a, "the value", x, "the whole row on each rank (its mean is taken)", "all_gather it first");
  }
}

/// q, k, v to the attention output and its log-sum-exp. Heads may be sharded, sequences may be distributed whole.
constexpr void attention(complaint& c, types in, type* out) {
  constexpr std::string_view who[]{"q", "k", "v"};
  const int last = in[0].last();
  out[0] = out[1] = in[0];
  out[1].shape[1] = dim{in[0].shape[last].name, in[0].shape[last].count()};
  out[1].holds = element::wide;
  for (axis a : axes)
    for (int i = 0; i < 3; ++i) {
      const placement q = in[0][a], p = in[i][a];
      const bool splits_sequences = q == V(0) && (a == axis::cp || a == axis::tp);
      if (p == P) c.found(a, who[i], in[i], any_but_pending, reduce_first);
      else if (i > 0 && splits_sequences ? p != R : p != q)
        c.found(a, who[i], in[i], splits_sequences ? "replicated (R): every query meets every key" : "q's placement",
                "all_gather it over the tokens first");
      else if (splits_sequences && a == axis::tp)
        c.found(a, "q", in[0], "whole sequences on each rank", "all_gather it over the tokens first");
    }
}
/// Gradients of q, k, v: linear in dout; keys that were replicated while queries are sharded get partial sums.
constexpr void attention_gradient(complaint& c, types in, type* out) {
  const type& g = in.back();
  for (int i = 0; i < 3; ++i) {
    out[i] = in[i];
    for (axis a : axes) {
      const placement q = in[0][a], p = in[i][a];
      if (g[a] != q && !(q == R && g[a] == P))
        c.found(a, "the gradient", g, "what belongs to q's placement", "check the op's dual");
      out[i][a] = p == R && (q.k == placement::V || g[a] == P) ? P : g[a];
    }
  }
}

/// Rows of a table: a sharded table gives a pending sum, since each rank has only some rows.
constexpr void embedding(complaint& c, types in, const type& table, type* out) {
  out[0] = in[0];
  out[0].ndim = 2;
  out[0].shape[1] = table.shape[1];
  out[0].holds = element::real;
  for (axis a : axes) {
    if (table[a] == V(1)) c.found(a, "the table", table, "whole or sharded along its rows", "shard it along the vocabulary");
    if (table[a] == V(0)) out[0][a] = in[0][a] == I ? P : c.found(a, "ids", in[0], "the same on every rank", "all_gather them first");
  }
}
constexpr placement embedding_gradient(complaint& c, const type& ids, const type& g, const type& table, axis a) {
  if (table[a] == V(0)) return g[a] == R ? V(0) : c.found(a, "the gradient", g, "replicated (R)", "check the op's dual");
  if (g[a].k == placement::V) return ids[a].k == placement::V || a == axis::tp ? P : g[a];
  return g[a];
}

/// Per-feature or per-position values added to every row: on a pending sum each rank would add them.
constexpr void added_to_rows(complaint& c, types in, const type& w, bool by_feature, type* out) {
  out[0] = in[0];
  for (axis a : axes) {
    const bool features = in[0][a] == V(in[0].last());
    if (in[0][a] == P) c.found(a, "the value", in[0], "R, I or V (each rank would add it)", reduce_first);
    else if (by_feature && features != (w[a] == V(0)))
      c.found(a, "the value", in[0], "the sharding of what is added", "shard both along the same features");
    else if (!by_feature && features)
      c.found(a, "the value", in[0], "whole rows", "all_gather it first");
  }
}

}  // namespace rankc::rules
