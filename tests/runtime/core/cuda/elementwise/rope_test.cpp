// SPDX-License-Identifier: Apache-2.0
#include "../bench.hpp"

namespace rankc::runtime::cuda::test::rope_test {
namespace {

TEST_CASE_TEMPLATE("rope turns pairs by position, and its gradient turns back", T, float, bf16) {
  struct shape {
    int tokens, heads, dim, seq, stride;
  };
  // Packs, and several heads to a thread; a packed buffer; a dim, then a stride, that allow no packs.
  for (const auto [tokens, heads, dim, seq, stride] : {shape{70, 3, 64, 35, 192}, shape{33, 9, 128, 16, 2048},
                                                       shape{9, 2, 6, 4, 12}, shape{9, 5, 64, 4, 323}}) {
    CAPTURE(dim);
    CAPTURE(stride);
    const auto check_written = [](const char* what, numbers got, numbers wanted) {
      for (std::size_t i = 0; i < wanted.size(); ++i)
        if (std::isnan(wanted[i])) {
          REQUIRE(std::isnan(got[i]));  // between the rows of two tokens
          got[i] = wanted[i] = 0.0;
        }
      check_rounded<T>(what, got, wanted);
    };
    bench b;
    const int half = dim / 2;
    const std::size_t count = static_cast<std::size_t>(tokens) * stride;
    const numbers x = random_numbers<T>(count, 2.0, 1);
    numbers table(static_cast<std::size_t>(2) * seq * half);
    for (int p = 0; p < seq; ++p)
      for (int i = 0; i < half; ++i) {
        const double angle = p * std::pow(10000.0, -2.0 * i / dim);
        table[static_cast<std::size_t>(p) * half + i] = rounded<float>(std::cos(angle));
        table[static_cast<std::size_t>(seq + p) * half + i] = rounded<float>(std::sin(angle));
      }
    const at x_at = b.put<T>(x), table_at = b.put<float>(table), y_at = b.room<T>(count),
             dx_at = b.room<T>(count);
    rope<T>(b.on(), y_at, x_at, table_at, tokens, heads, dim, seq, stride);
    rope_grad<T>(b.on(), dx_at, x_at, table_at, tokens, heads, dim, seq, stride);
    const double unwritten = std::numeric_limits<double>::quiet_NaN();
    numbers y(count, unwritten), dx(count, unwritten);
    for (int n = 0; n < tokens; ++n)
      for (int h = 0; h < heads; ++h)
        for (int i = 0; i < half; ++i) {
          const std::size_t a = static_cast<std::size_t>(n) * stride + h * dim + i, z = a + half;
          const double c = table[static_cast<std::size_t>(n % seq) * half + i],
                       s = table[static_cast<std::size_t>(seq + n % seq) * half + i];
          y[a] = x[a] * c - x[z] * s;
          y[z] = x[z] * c + x[a] * s;
          dx[a] = x[a] * c + x[z] * s;
          dx[z] = x[z] * c - x[a] * s;
        }
    check_written("y", b.take<T>(y_at, count), y);
    check_written("dx", b.take<T>(dx_at, count), dx);
    rope<T>(b.on(), x_at, x_at, table_at, tokens, heads, dim, seq, stride);
    for (std::size_t i = 0; i < count; ++i)
      if (std::isnan(y[i])) y[i] = x[i];
    check_rounded<T>("y in place", b.take<T>(x_at, count), y);
  }
}

}  // namespace
}  // namespace rankc::runtime::cuda::test::rope_test
