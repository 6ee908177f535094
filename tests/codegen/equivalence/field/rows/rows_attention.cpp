// SPDX-License-Identifier: Apache-2.0
// Attention. The exponential of a query's score with a key is drawn, keyed by both; the rest is exact: a
// query's output is the mean of the values with these weights, and the sum of the weights stands for the
// log-sum-exp. Partial results over subsets of the keys are combined by these sums.
#include "attention_heads.hpp"

namespace field::attentions {

namespace {

constexpr std::uint64_t key_of_pair = key_of("query and key");

/// A query and a key of one head. The exponential of their score is drawn, also from softcap and scale.
struct pair {
  const element *q, *k;
  std::int64_t dim;
  element weight(const rankc::attention_setting& by) const {
    const std::uint64_t scored = mix(mix(key_of_pair, by.softcap), by.scale);
    return draw_nonzero(field::key_of(field::key_of(by.is_plain() ? key_of_pair : scored, q, dim), k, dim));
  }
};
element dot(const element* a, const element* b, std::int64_t dim) {
  element sum = 0;
  for (std::int64_t j = 0; j < dim; ++j) sum = add(sum, multiply(a[j], b[j]));
  return sum;
}
void add_multiple(element* to, element factor, const element* of, std::int64_t dim) {
  for (std::int64_t j = 0; j < dim; ++j) to[j] = add(to[j], multiply(factor, of[j]));
}

/// The token of whole sequences that a query or a key belongs to.
struct whole {
  std::int64_t query(std::int64_t t) const { return t; }
  std::int64_t key(std::int64_t t) const { return t; }
};
struct of_chunks {
  const call& c;
  std::int64_t query(std::int64_t t) const { return token_of_chunks(c, c.first("q") + t); }
  std::int64_t key(std::int64_t t) const { return token_of_chunks(c, t); }
};
/// The keys belong to the rank `number` places before the queries' rank in the ring.
struct of_ring {
  call c;  // a call on chunks with as many ranks
  std::int64_t first, of_keys;
  explicit of_ring(const call& told) : first(told.first("q")) {
    const std::int64_t tokens = told.in("q").is.rows, ranks = told.rows * told.seq / tokens,
                       own = first / tokens;
    c.rows = told.rows;
    c.seq = told.seq;
    c.number = static_cast<double>(ranks);
    of_keys = (own - static_cast<std::int64_t>(told.number) + ranks) % ranks * tokens;
  }
  std::int64_t query(std::int64_t t) const { return token_of_chunks(c, first + t); }
  std::int64_t key(std::int64_t t) const { return token_of_chunks(c, of_keys + t); }
};

/// Visit the rows of the keys that a query sees: in its sequence or document, and in its window. Causal
/// attention sees no later key.
void each_key(const call& c, const matrix& k, const auto& by, const matrix* starts, std::int64_t t,
              auto visit) {
  const std::int64_t query = by.query(t), sequence = query / c.seq * c.seq,
                     first = sequence +
                             (starts ? static_cast<std::int64_t>(starts->of[static_cast<std::size_t>(query)])
                                     : 0);
  const std::int64_t last = c.attention.causal ? query : sequence + c.seq - 1;
  for (std::int64_t s = 0; s < k.is.rows; ++s)
    if (const std::int64_t key = by.key(s); key >= first && key <= last)
      if (c.attention.window == 0 || query - key < c.attention.window) visit(s);
}

void attend(call& c, const heads& n, const auto& by, const matrix* starts = nullptr) {
  const matrix &q = c.in("q"), &k = c.in("k"), &v = c.in("v");
  matrix &o = c.out("o", q.is.rows, n.of_q * n.value_dim, n.value_dim),
         &lse = c.out("lse", q.is.rows, n.of_q);
  for (std::int64_t t = 0; t < q.is.rows; ++t)
    for (std::int64_t h = 0; h < n.of_q; ++h) {
      element *result = o.row(t) + h * n.value_dim, sum = 0;
      each_key(c, k, by, starts, t, [&](std::int64_t s) {
        const element weight =
            pair{q.row(t) + h * n.dim, k.row(s) + n.kv(h) * n.dim, n.dim}.weight(c.attention);
        sum = add(sum, weight);
        add_multiple(result, weight, v.row(s) + n.kv(h) * n.value_dim, n.value_dim);
      });
      const element share = inverse(sum);
      for (std::int64_t j = 0; j < n.value_dim; ++j) result[j] = multiply(result[j], share);
      lse.of[statistic(lse, c.rows, t, h)] = sum;
    }
}

void attend_back(call& c, const heads& n, const auto& by, const matrix* starts = nullptr) {
  const matrix &d_o = c.in("d_o"), &q = c.in("q"), &k = c.in("k"), &v = c.in("v"), &o = c.in("o"),
               &lse = c.in("lse");
  expect_gradient(n, q, d_o, o, lse);
  matrix &dq = c.out("dq", q.is.rows, q.is.cols, q.is.unit),
         &dk = c.out("dk", k.is.rows, k.is.cols, k.is.unit),
         &dv = c.out("dv", v.is.rows, v.is.cols, v.is.unit);
  for (std::int64_t t = 0; t < q.is.rows; ++t)
    for (std::int64_t h = 0; h < n.of_q; ++h) {
      const std::int64_t at = h * n.dim, at_k = n.kv(h) * n.dim, at_v = n.kv(h) * n.value_dim,
                         at_o = h * n.value_dim;
      const element share = inverse(lse.of[statistic(lse, c.rows, t, h)]),
                    before = dot(d_o.row(t) + at_o, o.row(t) + at_o, n.value_dim);
      each_key(c, k, by, starts, t, [&](std::int64_t s) {
        const element p = multiply(share, pair{q.row(t) + at, k.row(s) + at_k, n.dim}.weight(c.attention));
        const element ds =
            multiply(p, add(dot(d_o.row(t) + at_o, v.row(s) + at_v, n.value_dim), negate(before)));
        add_multiple(dq.row(t) + at, ds, k.row(s) + at_k, n.dim);
        add_multiple(dk.row(s) + at_k, ds, q.row(t) + at, n.dim);
        add_multiple(dv.row(s) + at_v, p, d_o.row(t) + at_o, n.value_dim);
      });
    }
}

}  // namespace

void attention(call& c) { attend(c, heads_of(c, c.in("q"), c.in("k"), c.in("v")), whole{}); }
void attention_grad(call& c) { attend_back(c, heads_of(c, c.in("q"), c.in("k"), c.in("v")), whole{}); }
void chunk_attention(call& c) {
  attend(c, heads_of_chunks(c, c.in("q"), c.in("k"), c.in("v")), of_chunks{c});
}
void chunk_attention_grad(call& c) {
  attend_back(c, heads_of_chunks(c, c.in("q"), c.in("k"), c.in("v")), of_chunks{c});
}
void ring_attention(call& c) { attend(c, heads_of_ring(c, c.in("q"), c.in("k"), c.in("v")), of_ring(c)); }
void ring_attention_grad(call& c) {
  attend_back(c, heads_of_ring(c, c.in("q"), c.in("k"), c.in("v")), of_ring(c));
}

void document_attention(call& c) {
  attend(c, heads_of(c, c.in("q"), c.in("k"), c.in("v")), whole{}, &starts_of(c));
}
void document_attention_grad(call& c) {
  attend_back(c, heads_of(c, c.in("q"), c.in("k"), c.in("v")), whole{}, &starts_of(c));
}
void document_chunk_attention(call& c) {
  attend(c, heads_of_chunks(c, c.in("q"), c.in("k"), c.in("v")), of_chunks{c}, &starts_of(c));
}
void document_chunk_attention_grad(call& c) {
  attend_back(c, heads_of_chunks(c, c.in("q"), c.in("k"), c.in("v")), of_chunks{c}, &starts_of(c));
}
void document_ring_attention(call& c) {
  attend(c, heads_of_ring(c, c.in("q"), c.in("k"), c.in("v")), of_ring(c), &starts_of(c));
}
void document_ring_attention_grad(call& c) {
  attend_back(c, heads_of_ring(c, c.in("q"), c.in("k"), c.in("v")), of_ring(c), &starts_of(c));
}

void merge_attention(call& c) {
  const parts_of_attention parts(c);
  const std::int64_t dim = parts.o_before.is.cols / parts.lse_before.is.cols;
  matrix &o = c.out("o", parts.o_before.is.rows, parts.o_before.is.cols, parts.o_before.is.unit),
         &lse = c.out("lse", parts.lse_before.is.rows, parts.lse_before.is.cols);
  for (std::int64_t t = 0; t < o.is.rows; ++t)
    for (std::int64_t h = 0; h < lse.is.cols; ++h) {
      const std::size_t at = statistic(lse, c.rows, t, h);
      const element a = parts.lse_before.of[at], b = parts.lse_more.of[at], share = inverse(add(a, b));
      lse.of[at] = add(a, b);
      add_multiple(o.row(t) + h * dim, multiply(a, share), parts.o_before.row(t) + h * dim, dim);
      add_multiple(o.row(t) + h * dim, multiply(b, share), parts.o_more.row(t) + h * dim, dim);
    }
}

/// The exponential of a sink's score.
static element sink_weight(element score) { return draw_nonzero(field::key_of(key_of("sink"), &score, 1)); }

void sink_scores(call& c) { copy_sinks(c); }

void add_sinks(call& c) {
  const matrix &before = c.in("o_before"), &lse_before = c.in("lse_before"), &scores = c.in("scores");
  expect_sinks(c, before, lse_before, scores);
  const std::int64_t heads = scores.is.cols, dim = before.is.cols / heads;
  matrix &o = c.out("o", before.is.rows, before.is.cols, before.is.unit),
         &lse = c.out("lse", lse_before.is.rows, heads);
  for (std::int64_t t = 0; t < o.is.rows; ++t)
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::size_t at = statistic(lse, c.rows, t, h);
      lse.of[at] = add(lse_before.of[at], sink_weight(scores.row(t)[h]));
      add_multiple(o.row(t) + h * dim, multiply(lse_before.of[at], inverse(lse.of[at])),
                   before.row(t) + h * dim, dim);
    }
}

void add_sinks_grad(call& c) {
  const matrix &d_o = c.in("d_o"), &o = c.in("o"), &lse = c.in("lse"), &scores = c.in("scores");
  expect_sinks(c, o, lse, scores);
  expect(d_o.is.rows == o.is.rows && d_o.is.cols == o.is.cols, "sinks: sizes do not fit");
  const std::int64_t heads = scores.is.cols, dim = o.is.cols / heads;
  matrix& dscores = c.out("dscores", scores.is.rows, heads);
  for (std::int64_t t = 0; t < o.is.rows; ++t)
    for (std::int64_t h = 0; h < heads; ++h) {
      const element share =
          multiply(sink_weight(scores.row(t)[h]), inverse(lse.of[statistic(lse, c.rows, t, h)]));
      dscores.row(t)[h] = negate(multiply(share, dot(d_o.row(t) + h * dim, o.row(t) + h * dim, dim)));
    }
}

}  // namespace field::attentions
