// SPDX-License-Identifier: Apache-2.0
// The sizes of attention's operands.
#pragma once
#include "rows.hpp"

namespace field::attentions {

/// The numbers of query heads and of key-value heads. A value head has `value_dim` elements, and all others
/// `dim`.
struct heads {
  std::int64_t dim, value_dim, of_q, of_kv;
  std::int64_t kv(std::int64_t h) const { return h / (of_q / of_kv); }
};
inline heads count_heads(const matrix& q, const matrix& k, const matrix& v) {
  const std::int64_t dim = q.is.unit, value_dim = v.is.unit;
  expect(dim > 0 && value_dim > 0 && k.is.unit == dim && q.is.cols % dim == 0 && k.is.cols % dim == 0,
         "attention: heads of queries and of keys differ in size");
  const heads all{dim, value_dim, q.is.cols / dim, k.is.cols / dim};
  expect(all.of_kv > 0 && all.of_q % all.of_kv == 0,
         "attention: heads of queries do not share out among those of keys");
  expect(v.is.cols == all.of_kv * value_dim, "attention: other heads of values than of keys");
  return all;
}
inline heads heads_of(const call& c, const matrix& q, const matrix& k, const matrix& v,
                      std::int64_t ranks = 1) {
  expect(
      c.rows > 0 && c.seq > 0 && ranks > 0 && q.is.rows * ranks == c.rows * c.seq && q.is.rows % c.rows == 0,
      "attention: q is not of whole sequences");
  expect(k.is.rows == q.is.rows * ranks && v.is.rows == k.is.rows,
         "attention: keys are not of the queries' tokens");
  return count_heads(q, k, v);
}
/// For the queries of one rank's chunks and the keys of all ranks.
inline heads heads_of_chunks(const call& c, const matrix& q, const matrix& k, const matrix& v) {
  expect(c.number >= 1 && c.number <= 1 << 10, "attention: sequences of no ranks");
  const heads all = heads_of(c, q, k, v, static_cast<std::int64_t>(c.number));
  expect(c.first("q") >= 0 && c.first("q") % q.is.rows == 0 && c.first("q") < k.is.rows,
         "attention: queries of no rank");
  return all;
}
/// For the queries of one rank's chunks and the keys of one rank of its ring.
inline heads heads_of_ring(const call& c, const matrix& q, const matrix& k, const matrix& v) {
  expect(c.rows > 0 && c.seq > 0 && q.is.rows > 0 && c.rows * c.seq % q.is.rows == 0,
         "attention: queries that are no share of sequences");
  const std::int64_t ranks = c.rows * c.seq / q.is.rows;
  expect(ranks > 1 && c.seq % (2 * ranks) == 0 && k.is.rows == q.is.rows && v.is.rows == k.is.rows,
         "attention: keys are not of a rank of the ring");
  expect(c.number >= 0 && c.number < static_cast<double>(ranks) && c.first("q") >= 0 &&
             c.first("q") % q.is.rows == 0 && c.first("q") / q.is.rows < ranks,
         "attention: a step, or queries, of no rank");
  return count_heads(q, k, v);
}
/// The index of the log-sum-exp of a token and a head. As in kernels, each sequence has its heads one after
/// the other.
inline std::size_t statistic(const matrix& lse, std::int64_t rows, std::int64_t token, std::int64_t head) {
  const std::int64_t count = lse.is.rows / rows;
  return static_cast<std::size_t>((token / count * lse.is.cols + head) * count + token % count);
}
/// The operands of a merge: two results, each with a log-sum-exp per head.
struct parts_of_attention {
  const matrix &o_before, &lse_before, &o_more, &lse_more;
  explicit parts_of_attention(const call& c)
      : o_before(c.in("o_before")),
        lse_before(c.in("lse_before")),
        o_more(c.in("o_more")),
        lse_more(c.in("lse_more")) {
    expect(c.rows > 0 && o_before.is.rows % c.rows == 0 && o_before.is.rows == o_more.is.rows &&
               o_before.is.cols == o_more.is.cols && lse_before.is.rows == o_before.is.rows &&
               lse_more.is.rows == o_before.is.rows && lse_before.is.cols == lse_more.is.cols &&
               lse_before.is.cols > 0 && o_before.is.cols % lse_before.is.cols == 0,
           "merge_attention: sizes do not fit");
  }
};
/// Expects o and scores to have the tokens and heads of the log-sum-exps.
inline void expect_sinks(const call& c, const matrix& o, const matrix& lse, const matrix& scores) {
  expect(c.rows > 0 && o.is.rows % c.rows == 0 && lse.is.rows == o.is.rows && scores.is.rows == o.is.rows &&
             lse.is.cols == scores.is.cols && o.is.cols % lse.is.cols == 0,
         "sinks: sizes do not fit");
}
/// The scores of the sinks, repeated for each token of x.
inline void copy_sinks(call& c) {
  const matrix &x = c.in("x"), &sinks = c.in("sinks");
  matrix& scores = c.out("scores", x.is.rows, sinks.is.size());
  for (std::int64_t t = 0; t < x.is.rows; ++t) std::copy(sinks.of.begin(), sinks.of.end(), scores.row(t));
}
inline void expect_gradient(const heads& n, const matrix& q, const matrix& d_o, const matrix& o,
                            const matrix& lse) {
  const std::int64_t width = n.of_q * n.value_dim;
  expect(d_o.is.rows == q.is.rows && d_o.is.cols == width && o.is.rows == q.is.rows && o.is.cols == width &&
             lse.is.rows == q.is.rows && lse.is.cols == n.of_q,
         "attention_grad: sizes do not fit");
}

}  // namespace field::attentions
