// SPDX-License-Identifier: Apache-2.0
// Attention between its projections: one fused op, or logits and attend. Sequences are whole or sharded.
#pragma once
#include "linear.hpp"

namespace rankc::published_model {

/// Heads are sharded over tp1 and queries over tp2. tp2 all-gathers keys and values.
struct attention_shard {
  double heads, queries, l, q;  // heads of all sequences; queries and keys of each; width of a head
  int tp2;

  constexpr attention_shard(const transformer& m, int b, int tp1, int tp2_)
      : heads(double(b) * (m.h / tp1)), queries(m.l / tp2_), l(m.l), q(m.e / m.h), tp2(tp2_) {}

  constexpr double scores() const { return heads * queries * l; }
  constexpr double query() const { return heads * queries * q; }  // elements of the queries, or of the result
  constexpr double key() const { return heads * l * q; }          // of gathered keys, or of values
  constexpr double logits_flops() const { return scores() * (2 * q - 1); }
  constexpr double attend_flops() const { return query() * (2 * l - 1); }
  constexpr double key_grad_flops() const { return key() * (2 * queries - 1); }

  /// Gathers before the forward, and again before the backward, which reduce-scatters the gradients.
  constexpr void gather(op& x, double volume) const {
    if (tp2 > 1) x.first = {collective::sharded, axis::tp2, volume, 1, 2};
  }
};

/// Attention in one kernel that saves no scores. Its backward recomputes them.
constexpr op fused_attention(std::string_view name, const attention_shard& a) {
  const double s = a.scores(), rows = a.heads * a.queries, sums = rows * (a.l - 1);
  op x{name, true};
  x.stored = (4 * a.query() + 2 * rows) * element;
  x.forward.flops = (a.logits_flops() + a.attend_flops()) * flop;
  x.forward.vector_flops = (3 * s + sums) * flop;
  x.forward.bytes = (2 * a.query() + 2 * a.key() + rows) * element;
  x.backward.flops = (a.attend_flops() + 2 * a.key_grad_flops() + 2 * a.logits_flops()) * flop;
  x.backward.vector_flops = (7 * s + 2 * sums) * flop;
  x.backward.bytes = 2 * (a.key() + a.query()) * element + x.stored;
  a.gather(x, 2 * a.key() * element);
  return x;
}

constexpr op logits(std::string_view name, const attention_shard& a) {
  op x{name, true};
  x.stored = 2 * a.query() * element;
  x.forward.flops = a.logits_flops() * flop;
  x.forward.bytes = (a.query() + a.key() + a.scores()) * element;
  x.backward.flops = (a.attend_flops() + a.key_grad_flops()) * flop;
  x.backward.bytes = (a.query() + a.key() + 2 * a.scores()) * element + x.stored;
  a.gather(x, a.key() * element);
  return x;
}

/// `keeps_scores`: false if the scores are recomputed for the backward.
constexpr op attend(std::string_view name, const attention_shard& a, bool keeps_scores) {
  op x{name, true};
  x.stored = ((keeps_scores ? a.scores() : 0) + a.query()) * element;
  x.forward.flops = a.attend_flops() * flop;
  x.forward.bytes = (a.scores() + a.key() + a.query()) * element;
  x.backward.flops = (a.logits_flops() + a.key_grad_flops()) * flop;
  x.backward.bytes = (3 * a.query() + 2 * a.scores() + a.key()) * element;
  a.gather(x, a.key() * element);
  return x;
}

/// Sizes of one rank's tensors if SUMMA computes the scores: heads are whole, their width is sharded over
/// tp1, queries over tp2.
struct attention_panels {
  double heads, queries, l, q, query, key, scores;

  constexpr attention_panels(const transformer& m, int b, int tp1, int tp2)
      : heads(double(b) * m.h),
        queries(m.l / tp2),
        l(m.l),
        q(m.e / m.h / tp1),
        query(heads * queries * q),
        key(heads * l * q),
        scores(heads * queries * l) {}
  constexpr double moved(int panels) const { return (scores + key + query * panels) * element; }
};

constexpr op logits_summa(const setting& on, std::string_view name, int b, int tp1, int tp2, int panels) {
  const attention_panels a(on.model, b, tp1, tp2);
  op x{name, true};
  x.stored = 2 * a.query * element;
  x.forward.flops = a.scores * (2 * a.q - 1) * flop;
  x.forward.bytes = a.moved(panels);
  x.backward.flops = (a.query * (2 * a.l - 1) + a.key * (2 * a.queries - 1)) * flop;
  x.backward.bytes = 2 * a.moved(panels);
  move_panels(on, x, panels, tp1, a.scores * element, tp2, a.key * element);
  return x;
}

/// Scores times values.
constexpr op attend_summa(const setting& on, std::string_view name, int b, int tp1, int tp2, int panels) {
  const attention_panels a(on.model, b, tp1, tp2);
  op x{name, true};
  x.stored = (a.heads * a.queries * (on.model.l / tp1) + a.query) * element;
  x.forward.flops = a.query * 2 * a.l * flop;
  x.forward.bytes = a.moved(panels);
  x.backward.flops = (a.scores * (2 * a.q - 1) + a.key * (2 * a.queries - 1)) * flop;
  x.backward.bytes = 2 * a.moved(panels);
  move_panels(on, x, panels, tp1, a.scores * element, tp2, a.key * element);
  return x;
}

}  // namespace rankc::published_model
