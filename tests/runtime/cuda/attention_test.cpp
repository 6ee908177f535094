// SPDX-License-Identifier: Apache-2.0
#include "bench.hpp"

namespace rankc::cuda::test {
namespace {

struct shape {
  int rows, seq, heads, kv_heads, dim;
};
// Within a tile; past it; grouped heads; each size of head dim, and dims that fill none.
constexpr shape shapes[] = {
    {1, 5, 1, 1, 8}, {2, 64, 2, 2, 32}, {1, 150, 4, 2, 64}, {1, 129, 2, 1, 128}, {2, 70, 3, 1, 40}};

/// Attention and its gradients in f64, one score at a time.
struct reference {
  shape s;
  numbers o, lse, dq, dk, dv;
  std::size_t q_at(int row, int t, int h) const {
    return ((static_cast<std::size_t>(row) * s.seq + t) * s.heads + h) * s.dim;
  }
  std::size_t k_at(int row, int t, int h) const {
    return ((static_cast<std::size_t>(row) * s.seq + t) * s.kv_heads + h / (s.heads / s.kv_heads)) * s.dim;
  }
  reference(shape of, const numbers& q, const numbers& k, const numbers& v, const numbers& dout)
      : s(of),
        o(q.size(), 0.0),
        lse(static_cast<std::size_t>(s.rows) * s.heads * s.seq),
        dq(q.size(), 0.0),
        dk(k.size(), 0.0),
        dv(v.size(), 0.0) {
    const double scale = 1.0 / std::sqrt(static_cast<double>(s.dim));
    for (int row = 0; row < s.rows; ++row)
      for (int h = 0; h < s.heads; ++h)
        for (int t = 0; t < s.seq; ++t) {
          const std::size_t at_q = q_at(row, t, h);
          numbers p(t + 1, 0.0), dp(t + 1, 0.0);
          double total = 0.0, delta = 0.0;
          for (int u = 0; u <= t; ++u) {
            for (int d = 0; d < s.dim; ++d) p[u] += q[at_q + d] * k[k_at(row, u, h) + d] * scale;
            p[u] = std::exp(p[u]);
            total += p[u];
          }
          lse[(static_cast<std::size_t>(row) * s.heads + h) * s.seq + t] = std::log(total);
          for (int u = 0; u <= t; ++u) {
            p[u] /= total;
            for (int d = 0; d < s.dim; ++d) {
              o[at_q + d] += p[u] * v[k_at(row, u, h) + d];
              dp[u] += dout[at_q + d] * v[k_at(row, u, h) + d];
              dv[k_at(row, u, h) + d] += p[u] * dout[at_q + d];
            }
            delta += p[u] * dp[u];
          }
          for (int u = 0; u <= t; ++u)
            for (int d = 0; d < s.dim; ++d) {
              dq[at_q + d] += scale * p[u] * (dp[u] - delta) * k[k_at(row, u, h) + d];
              dk[k_at(row, u, h) + d] += scale * p[u] * (dp[u] - delta) * q[at_q + d];
            }
        }
  }
};

TEST_CASE_TEMPLATE("attention and its gradients", T, float, bf16) {
  for (const shape s : shapes) {
    CAPTURE(s.seq);
    CAPTURE(s.dim);
    bench b;
    const std::size_t n_q = static_cast<std::size_t>(s.rows) * s.seq * s.heads * s.dim,
                      n_k = static_cast<std::size_t>(s.rows) * s.seq * s.kv_heads * s.dim,
                      n_lse = static_cast<std::size_t>(s.rows) * s.seq * s.heads;
    const numbers q = random_numbers<T>(n_q, 1.5, 1), k = random_numbers<T>(n_k, 1.5, 2),
                  v = random_numbers<T>(n_k, 1.0, 3), dout = random_numbers<T>(n_q, 1.0, 4);
    const at q_at = b.put<T>(q), k_at = b.put<T>(k), v_at = b.put<T>(v), dout_at = b.put<T>(dout),
             o_at = b.room<T>(n_q), lse_at = b.room<float>(n_lse), dq_at = b.room<T>(n_q),
             dk_at = b.room<T>(n_k), dv_at = b.room<T>(n_k),
             scratch = b.room<T>(attention_grad_scratch(s.seq));
    attention<T>(b.of(), o_at, lse_at, scratch, q_at, k_at, v_at, s.rows, s.seq, s.heads, s.kv_heads, s.dim);
    attention_grad<T>(b.of(), dq_at, dk_at, dv_at, scratch, dout_at, q_at, k_at, v_at, o_at, lse_at, s.rows,
                      s.seq, s.heads, s.kv_heads, s.dim);
    const reference wanted(s, q, k, v, dout);
    check_close("lse", b.take<float>(lse_at, n_lse), wanted.lse, 1e-5, 1e-5);
    check_rounded<T>("o", b.take<T>(o_at, n_q), wanted.o, 4.0);
    // delta is taken from o as it was stored: in bf16 its rounding, up to 2^-9 of |o|, enters every ds.
    const double absolute = std::is_same_v<T, float> ? 2e-5 : 2e-2,
                 relative = std::is_same_v<T, float> ? 1e-4 : 1e-2;
    check_close("dq", b.take<T>(dq_at, n_q), wanted.dq, relative, absolute);
    check_close("dk", b.take<T>(dk_at, n_k), wanted.dk, relative, absolute);
    check_close("dv", b.take<T>(dv_at, n_k), wanted.dv, relative, absolute);
  }
}

TEST_CASE("the attention gradient has the same bits every time") {
  constexpr int seq = 200, heads = 4, dim = 64;
  constexpr std::size_t count = std::size_t{seq} * heads * dim;
  bench b;
  const at q = b.put<float>(random_numbers<float>(count, 1.0, 1)),
           k = b.put<float>(random_numbers<float>(count, 1.0, 2)),
           v = b.put<float>(random_numbers<float>(count, 1.0, 3)),
           dout = b.put<float>(random_numbers<float>(count, 1.0, 4)), o = b.room<float>(count),
           lse = b.room<float>(std::size_t{seq} * heads), dq = b.room<float>(count),
           dk = b.room<float>(count), dv = b.room<float>(count);
  attention<float>(b.of(), o, lse, o, q, k, v, 1, seq, heads, heads, dim);
  numbers first;
  for (int time = 0; time < 3; ++time) {
    attention_grad<float>(b.of(), dq, dk, dv, o, dout, q, k, v, o, lse, 1, seq, heads, heads, dim);
    numbers all = b.take<float>(dq, count);
    for (const at part : {dk, dv})
      for (const double x : b.take<float>(part, count)) all.push_back(x);
    if (first.empty()) first = all;
    check_close("dq, dk, dv", all, first, 0.0, 0.0);
  }
}

TEST_CASE("a head dim above 128 is refused by name") {
  bench b;
  CHECK_THROWS_WITH_AS(attention<float>(b.of(), {}, {}, {}, {}, {}, {}, 1, 4, 1, 1, 160),
                       "rank 0, step 1: attention: the head dim is 160; it must be at most 128", failure);
}

}  // namespace
}  // namespace rankc::cuda::test
