// SPDX-License-Identifier: Apache-2.0
// Causal attention. What a query gets is keyed by the query, and by the keys and values of its sequence up to its own
// position, in their order. Of the gradient of a result each number counts in the gradients of the query and of all
// those keys and values.
#include "attention_heads.hpp"

#include <algorithm>

namespace field::attentions {

namespace {

constexpr std::uint64_t key_of_keys = key_of("keys"), key_of_result = key_of("attention"),
                        key_of_query = key_of("query'"), key_of_pair = key_of("pair'");

std::uint64_t number_of(std::int64_t n) { return static_cast<std::uint64_t>(n); }

/// Of each token and key-value head: a key of all keys and values of its sequence so far.
std::vector<std::uint64_t> keys_so_far(const call& c, const heads& n, const matrix& k, const matrix& v) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(k.is.rows * n.of_kv));
  for (std::int64_t t = 0; t < k.is.rows; ++t)
    for (std::int64_t h = 0; h < n.of_kv; ++h) {
      const std::uint64_t before = t % c.seq ? all[static_cast<std::size_t>((t - 1) * n.of_kv + h)] : key_of_keys;
      all[static_cast<std::size_t>(t * n.of_kv + h)] =
          field::key_of(field::key_of(before, k.row(t) + h * n.dim, n.dim), v.row(t) + h * n.dim, n.dim);
    }
  return all;
}

/// A factor of d_o for each of dq, dk and dv.
struct parts {
  element q = 0, k = 0, v = 0;
};
parts weigh(std::uint64_t key, const element* d_o, std::int64_t dim) {
  parts sum;
  for (std::int64_t j = 0; j < dim; ++j) {
    const std::uint64_t at = mix(key, number_of(j));
    sum.q = add(sum.q, multiply(d_o[j], draw(mix(at, 1))));
    sum.k = add(sum.k, multiply(d_o[j], draw(mix(at, 2))));
    sum.v = add(sum.v, multiply(d_o[j], draw(mix(at, 3))));
  }
  return sum;
}
void take(element* to, element weight, std::uint64_t key, std::int64_t dim) {
  for (std::int64_t j = 0; j < dim; ++j) to[j] = add(to[j], multiply(weight, draw(mix(key, number_of(j)))));
}

/// Which token of whole sequences a query is, and a key.
struct whole {
  std::int64_t query(std::int64_t t) const { return t; }
  std::int64_t key(std::int64_t t) const { return t; }
};
struct of_chunks {
  const call& c;
  std::int64_t query(std::int64_t t) const { return token_of_chunks(c, c.first("q") + t); }
  std::int64_t key(std::int64_t t) const { return token_of_chunks(c, t); }
};

/// Keys in the order of their tokens.
matrix in_order(const matrix& k, const auto& by) {
  matrix out(k.is);
  for (std::int64_t t = 0; t < k.is.rows; ++t) std::copy_n(k.row(t), k.is.cols, out.row(by.key(t)));
  return out;
}

void attend(call& c, const heads& n, const auto& by) {
  const matrix &q = c.in("q"), k = in_order(c.in("k"), by), v = in_order(c.in("v"), by);
  const std::vector<std::uint64_t> so_far = keys_so_far(c, n, k, v);
  matrix &o = c.out("o", q.is.rows, q.is.cols, q.is.unit), &lse = c.out("lse", q.is.rows, n.of_q);
  for (std::int64_t t = 0; t < q.is.rows; ++t)
    for (std::int64_t h = 0; h < n.of_q; ++h) {
      const std::uint64_t keys = so_far[static_cast<std::size_t>(by.query(t) * n.of_kv + n.kv(h))];
      const std::uint64_t key = field::key_of(mix(key_of_result, keys), q.row(t) + h * n.dim, n.dim);
      for (std::int64_t j = 0; j < n.dim; ++j) o.row(t)[h * n.dim + j] = draw(mix(key, number_of(j)));
      lse.row(t)[h] = draw(mix(key, number_of(n.dim)));
    }
}

void attend_back(call& c, const heads& n, const auto& by) {
  const matrix &d_o = c.in("d_o"), &q = c.in("q"), k = in_order(c.in("k"), by), v = in_order(c.in("v"), by), &o = c.in("o"),
               &lse = c.in("lse");
  expect_gradient(n, q, d_o, o, lse);
  const std::vector<std::uint64_t> so_far = keys_so_far(c, n, k, v);
  matrix &dq = c.out("dq", q.is.rows, q.is.cols, q.is.unit), &dk = c.out("dk", k.is.rows, k.is.cols, k.is.unit),
         &dv = c.out("dv", v.is.rows, v.is.cols, v.is.unit);
  std::vector<std::int64_t> place(static_cast<std::size_t>(k.is.rows));  // of each token's key
  for (std::int64_t s = 0; s < k.is.rows; ++s) place[static_cast<std::size_t>(by.key(s))] = s;
  for (std::int64_t t = 0; t < q.is.rows; ++t)
    for (std::int64_t h = 0; h < n.of_q; ++h) {
      const std::int64_t at = h * n.dim, at_kv = n.kv(h) * n.dim;
      std::uint64_t key = mix(key_of_query, so_far[static_cast<std::size_t>(by.query(t) * n.of_kv + n.kv(h))]);
      key = field::key_of(field::key_of(key, q.row(t) + at, n.dim), o.row(t) + at, n.dim);
      key = mix(key, lse.row(t)[h]);
      const parts weights = weigh(key, d_o.row(t) + at, n.dim);
      take(dq.row(t) + at, weights.q, mix(key, 4), n.dim);
      for (std::int64_t s = by.query(t) - by.query(t) % c.seq; s <= by.query(t); ++s) {
        const std::uint64_t pair =
            field::key_of(field::key_of(mix(key_of_pair, key), k.row(s) + at_kv, n.dim), v.row(s) + at_kv, n.dim);
        take(dk.row(place[static_cast<std::size_t>(s)]) + at_kv, weights.k, mix(pair, 5), n.dim);
        take(dv.row(place[static_cast<std::size_t>(s)]) + at_kv, weights.v, mix(pair, 6), n.dim);
      }
    }
}

}  // namespace

void attention(call& c) { attend(c, heads_of(c, c.in("q"), c.in("k"), c.in("v")), whole{}); }
void attention_grad(call& c) { attend_back(c, heads_of(c, c.in("q"), c.in("k"), c.in("v")), whole{}); }
void chunk_attention(call& c) { attend(c, heads_of_chunks(c, c.in("q"), c.in("k"), c.in("v")), of_chunks{c}); }
void chunk_attention_grad(call& c) { attend_back(c, heads_of_chunks(c, c.in("q"), c.in("k"), c.in("v")), of_chunks{c}); }

}  // namespace field::attentions
