// SPDX-License-Identifier: Apache-2.0
// Causal attention, with grouped key/value heads, against loops and central differences.
#include "workspace.hpp"

#include <rankc/contract/kernel_scratch.hpp>

namespace attention_test {

using namespace rankc::test;
namespace host = rankc::host;

namespace {

struct sizes {
  int rows, seq, heads, kv_heads, dim;
  std::size_t q() const { return static_cast<std::size_t>(rows) * seq * heads * dim; }
  std::size_t kv() const { return static_cast<std::size_t>(rows) * seq * kv_heads * dim; }
  std::size_t lse() const { return static_cast<std::size_t>(rows) * heads * seq; }
};

// o, and the log-sum-exps if `lse` is given.
values attention_reference(const sizes& s, const values& q, const values& k, const values& v,
                           values* lse = nullptr) {
  values o(s.q()), p(s.seq);
  for (int row = 0; row < s.rows; ++row)
    for (int h = 0; h < s.heads; ++h)
      for (int i = 0; i < s.seq; ++i) {
        const auto query = [&](int c) { return ((row * s.seq + i) * s.heads + h) * s.dim + c; };
        const auto key = [&](int j, int c) {
          return ((row * s.seq + j) * s.kv_heads + h / (s.heads / s.kv_heads)) * s.dim + c;
        };
        double total = 0;
        for (int j = 0; j <= i; ++j) {
          double score = 0;
          for (int c = 0; c < s.dim; ++c) score += q[query(c)] * k[key(j, c)];
          total += p[j] = std::exp(score / std::sqrt(s.dim));
        }
        for (int j = 0; j <= i; ++j)
          for (int c = 0; c < s.dim; ++c) o[query(c)] += p[j] / total * v[key(j, c)];
        if (lse) (*lse)[(row * s.heads + h) * s.seq + i] = std::log(total);
      }
  return o;
}

// Sizes of several query blocks, the last one short; grouped heads.
constexpr sizes several_blocks{2, 300, 4, 2, 8};

}  // namespace

TEST_CASE_TEMPLATE("attention is causal softmax(q k^T / sqrt(dim)) v, and saves its log-sum-exp", T, float,
                   double) {
  for (const sizes s : {sizes{2, 1, 2, 1, 4}, sizes{2, 7, 6, 3, 5}, sizes{1, 128, 2, 2, 4}, several_blocks}) {
    CAPTURE(s.seq);
    workspace<T> space;
    const values q = random_values(s.q(), 1), k = random_values(s.kv(), 2), v = random_values(s.kv(), 3);
    const at o = space.room(s.q()), lse = space.room(s.lse()),
             scratch = space.room(host::attention_scratch(s.seq, s.seq, 1));
    host::attention<T>(space.lane(), o, lse, scratch, space.put(q), space.put(k), space.put(v), s.rows, s.seq,
                       s.heads, s.kv_heads, s.dim, s.dim);
    values want_lse(s.lse());
    check_near(space.get(o, s.q()), attention_reference(s, q, k, v, &want_lse), tolerance<T>);
    check_near(space.get(lse, s.lse()), want_lse, tolerance<T>);
  }
}

TEST_CASE("the scratch of attention grows with the keys, not with their square") {
  for (const std::size_t seq : {128u, 8192u}) {
    CHECK(host::attention_scratch(2 * seq, 2 * seq, 4) == 2 * host::attention_scratch(seq, seq, 4));
    CHECK(host::attention_grad_scratch(2 * seq, 2 * seq, 4) == 2 * host::attention_grad_scratch(seq, seq, 4));
  }
}

TEST_CASE("large scores do not overflow") {
  constexpr sizes s{1, 3, 1, 1, 1};
  workspace<float> space;
  const at o = space.room(3), lse = space.room(3), scratch = space.room(host::attention_scratch(3, 3, 1));
  host::attention<float>(space.lane(), o, lse, scratch, space.put(values{1000, 1000, -1000}),
                         space.put(values{1, 2, 3}), space.put(values{4, 5, 6}), 1, 3, 1, 1, 1, 1);
  check_near(space.get(o, 3), {4, 5, 4}, 1e-6);
  check_near(space.get(lse, s.lse()), {1000, 2000, -1000}, 1e-6);
}

TEST_CASE("attention gradients are central differences, summed over the heads of a group") {
  for (const sizes s : {sizes{1, 1, 1, 1, 2}, sizes{2, 6, 6, 2, 3}, sizes{1, 5, 2, 2, 4}}) {
    CAPTURE(s.seq);
    workspace<double> space;
    const values q = random_values(s.q(), 1), k = random_values(s.kv(), 2), v = random_values(s.kv(), 3);
    const values dout = random_values(s.q(), 4);
    const at in_q = space.put(q), in_k = space.put(k), in_v = space.put(v), o = space.room(s.q());
    const at lse = space.room(s.lse()), scratch = space.room(host::attention_grad_scratch(s.seq, s.seq, 1));
    const at dq = space.room(s.q()), dk = space.room(s.kv()), dv = space.room(s.kv());
    host::attention<double>(space.lane(), o, lse, scratch, in_q, in_k, in_v, s.rows, s.seq, s.heads,
                            s.kv_heads, s.dim, s.dim);
    host::attention_grad<double>(space.lane(), dq, dk, dv, scratch, space.put(dout), in_q, in_k, in_v, o, lse,
                                 s.rows, s.seq, s.heads, s.kv_heads, s.dim, s.dim);
    const auto of_q = [&](const values& x) { return attention_reference(s, x, k, v); };
    const auto of_k = [&](const values& x) { return attention_reference(s, q, x, v); };
    const auto of_v = [&](const values& x) { return attention_reference(s, q, k, x); };
    check_near(space.get(dq, s.q()), derivative(of_q, q, dout), difference_tolerance);
    check_near(space.get(dk, s.kv()), derivative(of_k, k, dout), difference_tolerance);
    check_near(space.get(dv, s.kv()), derivative(of_v, v, dout), difference_tolerance);
  }
}

// Differences of every element would take minutes; the closed form in plain loops is exact.
TEST_CASE_TEMPLATE("attention gradients over several query blocks equal plain loops", T, float, double) {
  constexpr sizes s = several_blocks;
  workspace<T> space;
  const values q = random_values(s.q(), 1), k = random_values(s.kv(), 2), v = random_values(s.kv(), 3);
  const values dout = random_values(s.q(), 4);
  const at in_q = space.put(q), in_k = space.put(k), in_v = space.put(v), o = space.room(s.q());
  const at lse = space.room(s.lse()), scratch = space.room(host::attention_grad_scratch(s.seq, s.seq, 1));
  const at dq = space.room(s.q()), dk = space.room(s.kv()), dv = space.room(s.kv());
  host::attention<T>(space.lane(), o, lse, scratch, in_q, in_k, in_v, s.rows, s.seq, s.heads, s.kv_heads,
                     s.dim, s.dim);
  host::attention_grad<T>(space.lane(), dq, dk, dv, scratch, space.put(dout), in_q, in_k, in_v, o, lse,
                          s.rows, s.seq, s.heads, s.kv_heads, s.dim, s.dim);

  values sums(s.lse()), want_dq(s.q()), want_dk(s.kv()), want_dv(s.kv());
  const values out = attention_reference(s, q, k, v, &sums);
  const double scale = 1 / std::sqrt(s.dim);
  for (int row = 0; row < s.rows; ++row)
    for (int h = 0; h < s.heads; ++h)
      for (int i = 0; i < s.seq; ++i)
        for (int j = 0; j <= i; ++j) {
          const int a = ((row * s.seq + i) * s.heads + h) * s.dim;
          const int b = ((row * s.seq + j) * s.kv_heads + h / (s.heads / s.kv_heads)) * s.dim;
          double score = 0, dp = 0, delta = 0;
          for (int c = 0; c < s.dim; ++c) {
            score += scale * q[a + c] * k[b + c];
            dp += dout[a + c] * v[b + c];
            delta += dout[a + c] * out[a + c];
          }
          const double p = std::exp(score - sums[(row * s.heads + h) * s.seq + i]),
                       ds = scale * p * (dp - delta);
          for (int c = 0; c < s.dim; ++c) {
            want_dq[a + c] += ds * k[b + c];
            want_dk[b + c] += ds * q[a + c];
            want_dv[b + c] += p * dout[a + c];
          }
        }
  check_near(space.get(dq, s.q()), want_dq, tolerance<T>);
  check_near(space.get(dk, s.kv()), want_dk, tolerance<T>);
  check_near(space.get(dv, s.kv()), want_dv, tolerance<T>);
}

}  // namespace attention_test
