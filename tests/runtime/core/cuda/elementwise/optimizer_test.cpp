// SPDX-License-Identifier: Apache-2.0
#include "../bench.hpp"

#include <algorithm>
#include <vector>

namespace rankc::runtime::cuda::test::optimizer_test {
namespace {

/// Ranges with gaps between them, some with decay: large, odd, tiny, empty, misaligned.
std::vector<range> some_ranges() {
  return {{0, 4096, true}, {4096, 1003, false}, {5101, 3, true},
          {5104, 0, true}, {6001, 70001, true}, {80000, 1, false}};
}
constexpr std::size_t region = 80001 + 7;

/// More one-element ranges than a single launch takes; every third element is left out.
std::vector<range> many_ranges() {
  std::vector<range> made;
  for (std::size_t i = 0; i < 4000; ++i)
    if (i % 3 != 0) made.push_back({i, 1, i % 2 == 0});
  return made;
}

TEST_CASE_TEMPLATE("sum of squares over ranges, f32 whatever the program's type", T, float, bf16) {
  for (const bool many : {false, true})
    for (const bool misplaced : {false, true}) {
      CAPTURE(many);
      CAPTURE(misplaced);
      bench b;
      if (misplaced) b.misplace();
      const auto ranges = many ? many_ranges() : some_ranges();
      const numbers g = random_numbers<float>(region, 1.0, 1);
      const at g_at = b.put<float>(g), total_at = b.room<float>(1);
      double total = 0.0;
      for (const range& each : ranges)
        for (std::size_t i = each.first; i < each.first + each.count; ++i) total += g[i] * g[i];
      sum_squares<T>(b.on(), total_at, g_at, ranges, false);
      check_close("total", b.take<float>(total_at, 1), {total}, 1e-5, 0.0);
      sum_squares<T>(b.on(), total_at, g_at, ranges, true);
      check_close("total, accumulated", b.take<float>(total_at, 1), {2 * total}, 1e-5, 0.0);
      sum_squares<T>(b.on(), total_at, g_at, {}, false);
      check_close("total of nothing", b.take<float>(total_at, 1), {0.0}, 0.0, 0.0);
    }
}

TEST_CASE_TEMPLATE("three steps of AdamW over ranges, with and without clipping", T, float, bf16) {
  constexpr bool copies = std::is_same_v<T, bf16>;
  for (const bool many : {false, true})
    for (const double clip : {0.0, 1.0, 2.0, 1e6}) {
      CAPTURE(many);
      CAPTURE(clip);
      bench b;
      if (clip == 1e6) b.misplace();
      const auto ranges = many ? many_ranges() : some_ranges();
      numbers w = random_numbers<float>(region, 1.0, 1), m(region, 0.0), v(region, 0.0);
      const numbers g = random_numbers<float>(region, 1.0, 2);
      double norm_squared = 0.0;
      for (const double x : g) norm_squared += x * x;
      REQUIRE(norm_squared > 2.5 * 2.5);
      const double scale = clip > 0 ? std::min(1.0, clip / (std::sqrt(norm_squared) + 1e-6)) : 1.0;
      const at w_at = b.put<float>(w), g_at = b.put<float>(g), m_at = b.put<float>(m), v_at = b.put<float>(v),
               norm_at = b.put<float>({norm_squared}), copy_at = b.room<bf16>(region);
      b.working_copy_at(copy_at);
      std::vector<bool> touched(region, false);
      for (const range& each : ranges)
        for (std::size_t i = each.first; i < each.first + each.count; ++i) touched[i] = true;
      for (int step = 1; step <= 3; ++step) {
        const double lr = 0.01 * step;
        b.owner().set_input({.lr = lr,
                             .weight_decay = 0.1,
                             .clip = clip,
                             .beta1 = 0.9,
                             .beta2 = 0.95,
                             .eps = 1e-8,
                             .step = step});
        b.owner().copy_input();
        adamw<T>(b.on(), w_at, g_at, m_at, v_at, norm_at, ranges);
        REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
        for (const range& each : ranges)
          for (std::size_t i = each.first; i < each.first + each.count; ++i) {
            const double d = g[i] * scale;
            if (each.decay) w[i] -= lr * 0.1 * w[i];
            m[i] = 0.9 * m[i] + 0.1 * d;
            v[i] = 0.95 * v[i] + 0.05 * d * d;
            w[i] -=
                lr / (1 - std::pow(0.9, step)) * m[i] / (std::sqrt(v[i] / (1 - std::pow(0.95, step))) + 1e-8);
          }
      }
      const numbers got = b.take<float>(w_at, region), copy = b.take<bf16>(copy_at, region);
      check_close("w", got, w, 1e-5, 1e-6);
      check_close("m", b.take<float>(m_at, region), m, 1e-5, 1e-7);
      check_close("v", b.take<float>(v_at, region), v, 1e-5, 1e-9);
      for (std::size_t i = 0; i < region; ++i)
        if (copies && touched[i]) REQUIRE(copy[i] == rounded<bf16>(got[i]));
        else REQUIRE(std::isnan(copy[i]));
    }
}

TEST_CASE_TEMPLATE("a step whose norm is not finite changes nothing", T, float, bf16) {
  bench b;
  const numbers before = random_numbers<float>(region, 1.0, 1);
  const at w_at = b.put<float>(before), m_at = b.put<float>(before), v_at = b.put<float>(before),
           g_at = b.put<float>(before), norm_at = b.put<float>({std::nan("")}),
           copy_at = b.room<bf16>(region);
  b.working_copy_at(copy_at);
  b.owner().set_input(
      {.lr = 0.1, .weight_decay = 0.1, .clip = 1, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .step = 1});
  b.owner().copy_input();
  adamw<T>(b.on(), w_at, g_at, m_at, v_at, norm_at, some_ranges());
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  for (const at kept : {w_at, m_at, v_at}) CHECK(b.take<float>(kept, region) == before);
}

}  // namespace
}  // namespace rankc::runtime::cuda::test::optimizer_test
