// SPDX-License-Identifier: Apache-2.0
// The typing rules. Axis by axis, a rule maps the placements of an op's operands to those of its results, or
// complains. Backward ops have rules too, so a wrong backward rule is found as well. The first operand of a
// backward op is the gradient.
#pragma once
#include <rankc/base/norm_eps.hpp>
#include <rankc/trace/trace.hpp>

namespace rankc::placement_rules {

inline constexpr std::string_view reduce_first = "reduce it first (all_reduce, reduce_scatter)";
inline constexpr std::string_view any_but_pending = "R, I or V";

constexpr bool same_shape(const type& a, const type& b) {
  return a.ndim == b.ndim && a.shape[0] == b.shape[0] && a.shape[1] == b.shape[1];
}

/// Complains unless x is rows of features, i.e. not token ids and not a loss.
constexpr bool rows(complaint& c, std::string_view who, const type& x) {
  if (x.ndim == 2) return true;
  if (!c.said) {
    complaint::put_shape(c.begin() << who << " is ", x);
    c.text << "; expected rows of features, (tokens, features)";
  }
  return false;
}

/// Complains unless w has one number for each feature of x.
constexpr void per_feature(complaint& c, const type& x, const type& w) {
  if (c.said || (w.ndim == 1 && w.shape[0] == x.shape[x.last()])) return;
  complaint::put_shape(c.begin() << "the weight is ", w);
  c.text << "; expected one number for each feature, (" << x.shape[x.last()].name << "="
         << x.shape[x.last()].size << ")";
}

/// Complains if a rank of a tensor-parallel region has only some tokens of each sequence. Over cp that is
/// allowed.
constexpr void whole_sequences(complaint& c, std::string_view who, const type& x) {
  for (axis a : axes)
    if (spans_region(a) && x[a] == V(0))
      c.found(a, who, x, "whole sequences on each rank", "all_gather it over the tokens first");
}

/// Complains if the tokens come from several cp ranks, because a rank knows only the positions of its tokens.
constexpr void in_order(complaint& c, std::string_view who, const type& x) {
  if (x[axis::cp] == R)
    c.found(axis::cp, who, x, "sharded along the tokens",
            "take the positions before all_gather, which puts tokens in the order of ranks");
  if (x[axis::cp] == V(x.last()))
    c.found(axis::cp, who, x, "sharded along the tokens",
            "take the positions before all_to_all, when tokens are the rank's own");
}

/// The rule of an elementwise op with one input. Only a linear one accepts a pending sum.
template <bool Linear>
constexpr void elementwise(complaint& c, types in, type* out, const op&) {
  out[0] = in[0];
  if (!rows(c, "the value", in[0])) return;
  for (axis a : axes)
    if (in[0][a] == P && !Linear) c.found(a, "the value", in[0], any_but_pending, reduce_first);
}

/// The placement of a + b over one axis.
constexpr placement sum_over(complaint& c, axis a, const type& x, const type& y) {
  const placement p = x[a], q = y[a];
  if (p == q) return p;
  if (p == P || q == P)
    return c.found(a, p == P ? "the left operand" : "the right operand", p == P ? x : y,
                   "R, I or V, or two pending sums", reduce_first);
  if (c.said) return p;
  complaint::put(c.begin() << "the left operand is ", x, p);
  complaint::put(c.text << " and the right operand ", y, q);
  c.text << " over " << name(a) << "; expected one placement: "
         << (p == I || q == I ? "use the matching conversion (all_reduce gives I, reduce_scatter gives V)"
                              : "shard both along the same dim, or neither");
  return p;
}
constexpr void sum(complaint& c, types in, type* out, const op&) {
  out[0] = in[0];
  if (!rows(c, "the left operand", in[0]) || !rows(c, "the right operand", in[1])) return;
  for (axis a : axes) out[0][a] = sum_over(c, a, in[0], in[1]);
  if (!c.said && !same_shape(in[0], in[1])) {
    complaint::put_shape(c.begin() << "the left operand is ", in[0]);
    complaint::put_shape(c.text << " and the right operand ", in[1]);
    c.text << "; expected two of one shape";
  }
}

/// The placement of an expression that is linear in `g` and any function of `held`. Backward kernels have
/// this form. `g` may be a pending sum; the held values may not.
constexpr placement linear_in(complaint& c, axis a, const type& g, types held) {
  for (const type& x : held) {
    if (x[a] == P) return c.found(a, "a saved value", x, any_but_pending, reduce_first);
    if (x[a].k != g[a].k && !(x[a] == R && g[a] == P))
      return c.found(a, "the gradient", g, "what belongs to the saved value's placement",
                     "check the op's dual");
  }
  return g[a];
}
/// Every output is placed like the gradient; the other operands are held.
constexpr void gradient_of_elementwise(complaint& c, types in, type* out, const op& o) {
  for (int j = 0; j < o.kind->count(true); ++j) {
    out[j] = in[0];
    for (axis a : axes) out[j][a] = linear_in(c, a, in[0], in.subspan(1));
  }
}

/// The remedy if a value with placement p must be replicated.
constexpr std::string_view replicate_first(placement p) {
  if (p == P) return reduce_first;
  return p == I ? "convert it first (replicate: its gradient is then all-reduced)" : "all_gather it first";
}

/// The type of y[tokens, out] = x[tokens, in] w[out, in]^T. `w_in`: the dim of w that is contracted.
constexpr type linear(complaint& c, const type& x, const type& w, int w_in = 1) {
  type y = x;
  if (!rows(c, "the value", x)) return y;
  const int last = x.last(), w_out = 1 - w_in;
  y.shape[last] = w.shape[w_out];
  if (x.shape[last] != w.shape[w_in]) {
    if (c.said) return y;
    complaint::put_dim(c.begin() << "the value's last dim is ", x.shape[last]);
    complaint::put_dim(c.text << "; expected the weight's ", w.shape[w_in]);
    return y;
  }
  for (axis a : axes) {
    const placement p = x[a], q = w[a];
    const bool by_features = p == V(last);
    if (q == V(w_in) && by_features) {
      y[a] = P;
    } else if (q == V(w_in)) {
      y[a] = c.found(a, "the value", x, "sharded like the weight's input features",
                     p == P ? reduce_first : "feed it a column-parallel result");
    } else if (q == V(w_out)) {
      y[a] = p == R ? V(last)
                    : c.found(a, "the value", x,
                              "replicated (R), the weight being sharded along its output features",
                              replicate_first(p));
    } else if (by_features) {
      c.found(a, "the value", x, "the weight to be sharded along it too",
              "all_gather it, or shard the weight");
    }
  }
  return y;
}

/// The placement of the gradient of w[out, in], from x[tokens, in] and dy[tokens, out]: a sum over tokens.
constexpr placement outer(complaint& c, const type& x, const type& g, axis a) {
  const placement p = x[a], q = g[a];
  const int last = x.last();
  if (p == R && q == V(last)) return V(0);
  if (p == V(last) && q == R) return V(1);
  if (p.k == placement::V && p == q && p.along != last) return P;
  if ((p == R && q == P) || (p == P && q == R)) return P;
  if (p == I && q == I) return I;
  return c.found(a, "the gradient", g, "what belongs to the saved value's placement", "check the op's dual");
}

/// The placement of the sum of g over its tokens.
constexpr placement sum_over_tokens(const type& g, axis a) {
  if (g[a].k != placement::V) return g[a];
  return g[a].along == g.last() ? V(0) : P;
}
/// Complains of a sum over the slots of experts, because slots without a token are never written.
constexpr void no_sum_over_slots(complaint& c, const type& x) {
  if (c.said || x.ndim != 2 || x.shape[0].unit_name.empty()) return;
  c.begin() << "it sums over slots of experts, and a slot that no token fills holds what its memory held "
               "before; expected rows of tokens: use the parameter before dispatch or after combine, or "
               "freeze it";
}
/// The rule for gradients of per-feature weights: sums over tokens of dy, or of dy times a held value.
constexpr void over_tokens(complaint& c, types in, type* out, const op& o) {
  no_sum_over_slots(c, in[0]);
  for (int j = 0; j < o.kind->count(true); ++j)
    for (axis a : axes) out[j][a] = sum_over_tokens(in[0], a);
}

/// Complains of an eps with which a row of zeros would be divided by zero.
constexpr void norm_eps(complaint& c, const op& o) {
  if (!c.said && !is_norm_eps(o.with.eps))
    c.begin() << "its eps is " << o.with.eps << "; expected a finite number of at least " << smallest_norm_eps
              << ": 1e-5 and 1e-6 are usual";
}

/// True if an axis shards the features of x and of all gains and shifts of one of rankc's own norms. RC280
/// then requires that the axis has one rank. It does not know the norms of users, which have a header.
constexpr bool shards_features(const op& o, const type& x, types weights, axis a) {
  bool all = x[a] == V(x.last()) && o.kind->header.empty();
  for (const type& w : weights) all &= w[a] == V(0);
  return all;
}
/// The rule of a norm: each rank has whole rows, and the same gain and shift. An axis may shard features and
/// gains alike, but RC280 then requires that it has one rank.
constexpr void norm(complaint& c, types in, type* out, const op& o) {
  const type& x = in[0];
  const types gain_and_shift = in.subspan(1);
  if (!rows(c, "the value", x)) return;
  out[0] = out[1] = x;
  // Mean and 1/std; 1/rms if there is no shift.
  out[1].shape[1] = dim{"statistics", static_cast<int>(gain_and_shift.size())};
  out[1].holds = element::wide;
  for (axis a : axes) {
    if (shards_features(o, x, gain_and_shift, a)) {
      out[1][a] = R;
      continue;
    }
    if (x[a] == P) c.found(a, "the value", x, any_but_pending, reduce_first);
    if (x[a] == V(x.last()))
      c.found(a, "the value", x, "the whole row on each rank (its mean is taken)", "all_gather it first");
    for (const type& w : gain_and_shift)
      if (w[a] != I) c.found(a, "the weight", w, "the same on every rank (I)", "declare it without a shard");
  }
  for (const type& w : gain_and_shift) per_feature(c, x, w);
  norm_eps(c, o);
}
/// The rule of a norm's gradient. It is linear in dy, with x and the statistics held. The gain is as in
/// `norm`.
constexpr void norm_gradient(complaint& c, types in, type* out, const op& o) {
  out[0] = in[0];
  for (axis a : axes)
    if (!shards_features(o, in[1], in.subspan(3), a)) out[0][a] = linear_in(c, a, in[0], in.subspan(1, 2));
}

/// The rule of rotary positions, which depend on the position of a token in its sequence.
constexpr void rope(complaint& c, types in, type* out, const op&) {
  out[0] = in[0];
  if (!rows(c, "the value", in[0])) return;
  whole_sequences(c, "the value", in[0]);
  in_order(c, "the value", in[0]);
  const dim& heads = in[0].shape[in[0].last()];
  if (!c.said && heads.unit % 2)
    c.begin() << "the value's last dim is " << heads.name << "=" << heads.size << " in units of "
              << heads.unit << "; expected heads of an even size, dim{name, size, head_dim, 'head_dim'}";
}

/// Complains if the heads of q, k and v do not match.
constexpr void heads_of_attention(complaint& c, types in) {
  const dim &q = in[0].shape[1], &k = in[1].shape[1], &v = in[2].shape[1];
  if (!c.said && (k.count() != v.count() || k.unit != q.unit || q.count() % k.count()))
    c.begin() << "q, k and v have " << q.count() << ", " << k.count() << " and " << v.count() << " heads of "
              << q.unit << ", " << k.unit << " and " << v.unit
              << " elements; expected heads of one size in q and k, as many heads in v as in k, "
              << "and their number to divide that in q";
}
/// The heads of attention's result: as many as those of q, each with the size of a value head.
constexpr dim heads_of_result(const dim& q, const dim& v) {
  return q.unit == v.unit ? q : dim{q.name, q.count() * v.unit, v.unit, v.unit_name};
}

/// The rule of attention: output and log-sum-exp. Heads may be sharded, and whole sequences may be
/// distributed over ranks.
constexpr void attention(complaint& c, types in, type* out, const op&) {
  constexpr std::string_view who[]{"q", "k", "v"};
  for (int i = 0; i < 3; ++i)
    if (!rows(c, who[i], in[i])) return;
  const int last = in[0].last();
  out[0] = out[1] = in[0];
  out[0].shape[1] = heads_of_result(in[0].shape[last], in[2].shape[last]);
  out[1].shape[1] = dim{in[0].shape[last].name, in[0].shape[last].count()};
  out[1].holds = element::wide;
  for (axis a : axes)
    for (int i = 0; i < 3; ++i) {
      const placement q = in[0][a], p = in[i][a];
      const bool splits_sequences = q == V(0) && cuts_sequences(a);
      if (p == P) c.found(a, who[i], in[i], any_but_pending, reduce_first);
      else if (i > 0 && splits_sequences ? p != R : p != q)
        c.found(a, who[i], in[i],
                splits_sequences ? "replicated (R): every query meets every key" : "q's placement",
                "all_gather it over the tokens first");
      else if (spans_region(a)) whole_sequences(c, who[i], in[i]);
    }
  heads_of_attention(c, in);
}
/// The rule for the gradients of q, k and v. If keys are replicated and queries sharded, the gradients of k
/// and v are partial sums.
constexpr void attention_gradient(complaint& c, types in, type* out, const op&) {
  const type &g = in[0], &query = in[1];
  for (int i = 0; i < 3; ++i) {
    out[i] = in[1 + i];
    for (axis a : axes) {
      const placement q = query[a], p = in[1 + i][a];
      if (g[a] != q && !(q == R && g[a] == P))
        c.found(a, "the gradient", g, "what belongs to q's placement", "check the op's dual");
      out[i][a] = p == R && (q.k == placement::V || g[a] == P) ? P : g[a];
    }
  }
}

/// The rule of table lookup. A table sharded along its rows gives a pending sum, because a rank has only some
/// rows.
constexpr void embedding(complaint& c, types in, type* out, const op&) {
  const type& table = in[1];
  if (in[0].holds != element::index) {
    complaint::put_shape(c.begin() << "the value is ", in[0]);
    c.text << "; expected token ids, (tokens)";
    return;
  }
  out[0] = in[0];
  out[0].ndim = 2;
  out[0].shape[1] = table.shape[1];
  out[0].holds = element::real;
  for (axis a : axes) {
    if (table[a] == V(1))
      c.found(a, "the table", table, "whole or sharded along its rows", "shard it along the vocabulary");
    if (table[a] == V(0))
      out[0][a] =
          in[0][a] == I ? P : c.found(a, "ids", in[0], "the same on every rank", "all_gather them first");
  }
}
constexpr void embedding_gradient(complaint& c, types in, type* out, const op&) {
  const type &g = in[0], table = out[0];
  for (axis a : axes)
    if (table[a] != V(0)) out[0][a] = g[a].k == placement::V ? P : g[a];
    else if (g[a] != R) c.found(a, "the gradient", g, "replicated (R)", "check the op's dual");
}

/// The rule of a bias. A pending sum is refused, because each rank would add the bias.
constexpr void bias(complaint& c, types in, type* out, const op&) {
  const type& w = in[1];
  out[0] = in[0];
  if (!rows(c, "the value", in[0])) return;
  for (axis a : axes) {
    if (in[0][a] == P)
      c.found(a, "the value", in[0], "R, I or V (each rank would add the bias)", reduce_first);
    else if ((in[0][a] == V(in[0].last())) != (w[a] == V(0)))
      c.found(a, "the value", in[0], "the sharding of the bias", "shard both along the same features");
  }
  per_feature(c, in[0], w);
}

/// The rule of learned positions: adds the table's row for the token's position in its sequence.
constexpr void position(complaint& c, types in, type* out, const op& o) {
  const type& table = in[1];
  const int seq = o.with.seq;
  out[0] = in[0];
  if (!rows(c, "the value", in[0])) return;
  for (axis a : axes) {
    if (in[0][a] == P)
      c.found(a, "the value", in[0], "R, I or V (each rank would add the positions)", reduce_first);
    if (in[0][a] == V(in[0].last())) c.found(a, "the value", in[0], "whole rows", "all_gather it first");
    if (table[a] != I)
      c.found(a, "the table", table, "the same on every rank (I)", "declare it without a shard");
  }
  in_order(c, "the value", in[0]);
  const dim& features = in[0].shape[in[0].last()];
  if (!c.said && (table.ndim != 2 || table.shape[0].size != seq || table.shape[1] != features)) {
    complaint::put_shape(c.begin() << "the table is ", table);
    c.text << "; expected a row for each position of a sequence, (positions=" << seq << ", " << features.name
           << "=" << features.size << ")";
  }
}

/// Complains unless a loss can be taken of the logits: each token counts once, and its target is on the same
/// rank.
constexpr void logits(complaint& c, const type& x, const type& targets, axis over) {
  if (!rows(c, "the value", x)) return;
  for (axis a : axes) {
    const placement p = x[a];
    if (p == P) c.found(a, "the value", x, any_but_pending, reduce_first);
    else if (p == R)
      c.found(a, "the value", x, "invariant (I), or sharded along the vocabulary (V)",
              "shard the weight that makes it, or do not replicate what it is made from (each rank would "
              "count the loss)");
    else if (p == V(1) && a != over)
      c.found(a, "the value", x, "the whole vocabulary", "all_gather it first");
    else if ((p == V(0)) != (targets[a] == V(0)))
      c.found(a, "the value", x,
              p == V(0) ? "all tokens, as the targets are" : "sharded along the tokens, as the targets are",
              p == V(0) ? "all_gather it over the tokens first" : "do not gather it");
  }
}

}  // namespace rankc::placement_rules
