// SPDX-License-Identifier: Apache-2.0
// Attention sinks against the definition in f64.
#include "../bench.hpp"

namespace rankc::runtime::cuda::test::sinks_test {
namespace {

TEST_CASE_TEMPLATE("sinks change attention's result, and have a gradient", T, float, bf16) {
  struct shape {
    int rows, seq, heads, dim;
  };
  // Heads of whole packs, and heads that do not fill packs.
  for (const auto [rows, seq, heads, dim] : {shape{2, 37, 4, 64}, shape{3, 5, 3, 6}}) {
    CAPTURE(dim);
    bench b;
    const int tokens = rows * seq;
    const std::size_t statistics = static_cast<std::size_t>(tokens) * heads, count = statistics * dim;
    numbers sinks = random_numbers<T>(heads, 3.0, 1);
    sinks[0] = rounded<T>(200);  // e^x alone would overflow
    numbers lse = random_numbers<float>(statistics, 3.0, 2);
    const numbers o = random_numbers<T>(count, 2.0, 3), dout = random_numbers<T>(count, 2.0, 4);
    numbers scores(statistics), with_sinks(count), sums(statistics), dscores(statistics);
    const at scores_at = b.room<T>(statistics), o_at = b.put<T>(o), lse_at = b.put<float>(lse),
             made = b.room<T>(count), made_sums = b.room<float>(statistics), gradient = b.room<T>(statistics);
    sink_scores<T>(b.on(), scores_at, o_at, b.put<T>(sinks), tokens, heads, dim);
    add_sinks<T>(b.on(), made, made_sums, o_at, lse_at, scores_at, rows, tokens, heads, dim);
    add_sinks_grad<T>(b.on(), gradient, b.put<T>(dout), made, made_sums, scores_at, rows, tokens, heads, dim);
    const numbers got = b.take<T>(made, count);
    for (int t = 0; t < tokens; ++t)
      for (int h = 0; h < heads; ++h) {
        const std::size_t at = (static_cast<std::size_t>(t) / seq * heads + h) * seq + t % seq,
                          of_head = static_cast<std::size_t>(t) * heads + h;
        const double top = std::max(lse[at], sinks[h]);
        scores[of_head] = sinks[h];
        sums[at] = top + std::log(std::exp(lse[at] - top) + std::exp(sinks[h] - top));
        double dot = 0;
        for (int d = 0; d < dim; ++d) {
          with_sinks[of_head * dim + d] = o[of_head * dim + d] * std::exp(lse[at] - sums[at]);
          dot += dout[of_head * dim + d] * got[of_head * dim + d];
        }
        dscores[of_head] = -std::exp(sinks[h] - sums[at]) * dot;
      }
    CHECK(b.take<T>(scores_at, statistics) == scores);
    check_close("o", got, with_sinks, 4 * half_unit<T>, 4 * half_unit<float>);
    check_close("lse", b.take<float>(made_sums, statistics), sums, 4 * half_unit<float>,
                4 * half_unit<float>);
    check_close("dscores", b.take<T>(gradient, statistics), dscores, 4 * half_unit<T>,
                dim * half_unit<float>);
    add_sinks<T>(b.on(), o_at, lse_at, o_at, lse_at, scores_at, rows, tokens, heads, dim);
    CHECK(b.take<T>(o_at, count) == got);
    CHECK(b.take<float>(lse_at, statistics) == b.take<float>(made_sums, statistics));
  }
}

}  // namespace
}  // namespace rankc::runtime::cuda::test::sinks_test
