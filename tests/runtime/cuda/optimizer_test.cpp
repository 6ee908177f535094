// SPDX-License-Identifier: Apache-2.0
#include "bench.hpp"

#include <algorithm>

namespace rankc::cuda::test {
namespace {

TEST_CASE_TEMPLATE("sum of squares, f32 whatever the program's type", T, float, bf16) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{1003}, std::size_t{1} << 20}) {
    CAPTURE(count);
    bench b;
    const numbers g = random_numbers<float>(count, 1.0, 1);
    const at g_at = b.put<float>(g), total_at = b.room<float>(1);
    double total = 0.0;
    for (const double x : g) total += x * x;
    sum_squares<T>(b.of(), total_at, g_at, count, false);
    check_close("total", b.take<float>(total_at, 1), {total}, 1e-5, 0.0);
    sum_squares<T>(b.of(), total_at, g_at, count, true);
    check_close("total, accumulated", b.take<float>(total_at, 1), {2 * total}, 1e-5, 0.0);
  }
}

TEST_CASE_TEMPLATE("three steps of AdamW, with and without decay and clipping", T, float, bf16) {
  for (const std::size_t count : {std::size_t{4096}, std::size_t{1003}})
    for (const bool decay : {false, true})
      for (const double clip : {0.0, 1.0, 1e6}) {
        CAPTURE(count);
        CAPTURE(decay);
        CAPTURE(clip);
        bench b;
        numbers w = random_numbers<float>(count, 1.0, 1), m(count, 0.0), v(count, 0.0);
        const numbers g = random_numbers<float>(count, 1.0, 2);
        double norm_squared = 0.0;
        for (const double x : g) norm_squared += x * x;
        const double scale = clip > 0 ? std::min(1.0, clip / (std::sqrt(norm_squared) + 1e-6)) : 1.0;
        const at w_at = b.put<float>(w), g_at = b.put<float>(g), m_at = b.put<float>(m),
                 v_at = b.put<float>(v), norm_at = b.put<float>({norm_squared});
        for (int step = 1; step <= 3; ++step) {
          const double lr = 0.01 * step;
          b.owner().set_input({.lr = lr,
                               .weight_decay = 0.1,
                               .clip = clip,
                               .beta1 = 0.9,
                               .beta2 = 0.95,
                               .eps = 1e-8,
                               .step = step});
          adamw<T>(b.of(), w_at, g_at, m_at, v_at, norm_at, count, decay);
          REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
          for (std::size_t i = 0; i < count; ++i) {
            const double d = g[i] * scale;
            if (decay) w[i] -= lr * 0.1 * w[i];
            m[i] = 0.9 * m[i] + 0.1 * d;
            v[i] = 0.95 * v[i] + 0.05 * d * d;
            w[i] -=
                lr / (1 - std::pow(0.9, step)) * m[i] / (std::sqrt(v[i] / (1 - std::pow(0.95, step))) + 1e-8);
          }
        }
        check_close("w", b.take<float>(w_at, count), w, 1e-5, 1e-6);
        check_close("m", b.take<float>(m_at, count), m, 1e-5, 1e-7);
        check_close("v", b.take<float>(v_at, count), v, 1e-5, 1e-9);
      }
}

}  // namespace
}  // namespace rankc::cuda::test
