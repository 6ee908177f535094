// SPDX-License-Identifier: Apache-2.0
// Attention sinks against a softmax with one additional score, and central differences.
#include "workspace.hpp"

#include <algorithm>

namespace sinks_test {

using namespace rankc::test;
namespace host = rankc::host;

namespace {

constexpr int rows = 2, seq = 5, heads = 3, kv_heads = 1, dim = 4, tokens = rows * seq, width = heads * dim;

/// Causal attention with one key head. Each query head has one additional score, whose weight is dropped.
values reference(const values& q, const values& k, const values& v, const values& sinks) {
  values o(q.size(), 0.0);
  for (int t = 0; t < tokens; ++t)
    for (int h = 0; h < heads; ++h) {
      values scores;
      for (int s = t / seq * seq; s <= t; ++s) {
        double score = 0;
        for (int d = 0; d < dim; ++d) score += q[t * width + h * dim + d] * k[s * dim + d];
        scores.push_back(score / std::sqrt(double{dim}));
      }
      double sum = std::exp(sinks[h]);
      for (const double score : scores) sum += std::exp(score);
      for (std::size_t s = 0; s < scores.size(); ++s)
        for (int d = 0; d < dim; ++d)
          o[t * width + h * dim + d] +=
              std::exp(scores[s]) / sum * v[(t / seq * seq + static_cast<int>(s)) * dim + d];
    }
  return o;
}

}  // namespace

TEST_CASE("attention with sinks, its gradients and those of the sinks") {
  workspace<double> space;
  const values q = random_values(tokens * width, 1), k = random_values(tokens * dim, 2),
               v = random_values(tokens * dim, 3), sinks = random_values(heads, 4),
               d_o = random_values(tokens * width, 5);
  const at in_q = space.put(q), in_k = space.put(k), in_v = space.put(v), in_d = space.put(d_o),
           o = space.room(q.size()), lse = space.room(tokens * heads), scores = space.room(tokens * heads),
           scratch = space.room(4096), dq = space.room(q.size()), dk = space.room(k.size()),
           dv = space.room(v.size()), dscores = space.room(tokens * heads);
  const auto& on = space.lane();
  host::attention<double>(on, o, lse, scratch, in_q, in_k, in_v, rows, seq, heads, kv_heads, dim, dim);
  host::sink_scores<double>(on, scores, in_q, space.put(sinks), tokens, heads, dim);
  host::add_sinks<double>(on, o, lse, o, lse, scores, rows, tokens, heads, dim);
  check_near(space.get(o, q.size()), reference(q, k, v, sinks), tolerance<double>);

  host::attention_grad<double>(on, dq, dk, dv, scratch, in_d, in_q, in_k, in_v, o, lse, rows, seq, heads,
                               kv_heads, dim, dim);
  host::add_sinks_grad<double>(on, dscores, in_d, o, lse, scores, rows, tokens, heads, dim);
  const auto check = [&](at got, const values& x, auto f) {
    check_near(space.get(got, x.size()), derivative(f, x, d_o), difference_tolerance);
  };
  check(dq, q, [&](const values& x) { return reference(x, k, v, sinks); });
  check(dk, k, [&](const values& x) { return reference(q, x, v, sinks); });
  check(dv, v, [&](const values& x) { return reference(q, k, x, sinks); });
  values sums(heads, 0.0);
  const values of_rows = space.get(dscores, tokens * heads);
  for (std::size_t i = 0; i < of_rows.size(); ++i) sums[i % heads] += of_rows[i];
  const values expected = derivative([&](const values& x) { return reference(q, k, v, x); }, sinks, d_o);
  check_near(sums, expected, difference_tolerance);
}

TEST_CASE_TEMPLATE("a sink far above the scores takes all weight, and one far below takes none", T, float,
                   double) {
  workspace<T> space;
  const values before = random_values(2 * dim, 1);
  const at o = space.put(before), lse = space.put(values{1.0, 1.0}),
           scores = space.put(values{400.0, -400.0});
  host::add_sinks<T>(space.lane(), o, lse, o, lse, scores, 1, 2, 1, dim);
  const values made = space.get(o, 2 * dim), sums = space.get(lse, 2);
  CHECK(sums == values{400.0, 1.0});
  for (int d = 0; d < dim; ++d) {
    CHECK(std::abs(made[d]) <= 1e-30);
    CHECK(made[dim + d] == static_cast<double>(static_cast<T>(before[dim + d])));
  }
}

}  // namespace sinks_test
