// SPDX-License-Identifier: Apache-2.0
// The sizes of attention's operands.
#pragma once
#include "rows.hpp"

namespace field::attentions {

/// Heads of queries, and of the keys and values that they share.
struct heads {
  std::int64_t dim, of_q, of_kv;
  std::int64_t kv(std::int64_t h) const { return h / (of_q / of_kv); }
};
inline heads heads_of(const call& c, const matrix& q, const matrix& k, const matrix& v, std::int64_t ranks = 1) {
  expect(c.rows > 0 && c.seq > 0 && ranks > 0 && q.is.rows * ranks == c.rows * c.seq, "attention: q is not of whole sequences");
  expect(k.is.rows == q.is.rows * ranks && v.is.rows == k.is.rows && k.is.cols == v.is.cols,
         "attention: keys are not of the queries' tokens");
  const std::int64_t dim = q.is.unit;
  expect(dim > 0 && k.is.unit == dim && v.is.unit == dim && q.is.cols % dim == 0 && k.is.cols % dim == 0,
         "attention: heads differ in size");
  const heads all{dim, q.is.cols / dim, k.is.cols / dim};
  expect(all.of_kv > 0 && all.of_q % all.of_kv == 0,
         "attention: heads of queries do not share out among those of keys");
  return all;
}
/// Of a rank's chunks of sequences, and the keys of all ranks.
inline heads heads_of_chunks(const call& c, const matrix& q, const matrix& k, const matrix& v) {
  expect(c.number >= 1 && c.number <= 1 << 10, "attention: sequences of no ranks");
  const heads all = heads_of(c, q, k, v, static_cast<std::int64_t>(c.number));
  expect(c.first("q") >= 0 && c.first("q") % q.is.rows == 0 && c.first("q") < k.is.rows, "attention: queries of no rank");
  return all;
}
inline void expect_gradient(const heads& n, const matrix& q, const matrix& d_o, const matrix& o, const matrix& lse) {
  expect(d_o.is.rows == q.is.rows && d_o.is.cols == q.is.cols && o.is.rows == q.is.rows && o.is.cols == q.is.cols &&
             lse.is.rows == q.is.rows && lse.is.cols == n.of_q,
         "attention_grad: sizes do not fit");
}

}  // namespace field::attentions
