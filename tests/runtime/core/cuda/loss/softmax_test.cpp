// SPDX-License-Identifier: Apache-2.0
#include "../bench.hpp"

#include <algorithm>

namespace rankc::runtime::cuda::test::softmax_test {
namespace {

TEST_CASE_TEMPLATE("softmax and its gradient", T, float, bf16) {
  struct shape {
    int tokens, width;
    bool misplaced = false;
  };
  // Packs, fewer than a warp; many; a width, then addresses, that allow none.
  for (const auto [tokens, width, misplaced] :
       {shape{70, 64}, shape{9, 8192}, shape{33, 51}, shape{5, 512, true}}) {
    CAPTURE(width);
    bench b;
    if (misplaced) b.misplace();
    const std::size_t count = static_cast<std::size_t>(tokens) * width;
    numbers x = random_numbers<T>(count, 4.0, 1);
    for (int c = 0; c < width; ++c) x[c] = rounded<T>(100 * x[c] + 400);  // e^x alone would overflow
    const numbers dy = random_numbers<T>(count, 2.0, 2);
    const at x_at = b.put<T>(x), y_at = b.room<T>(count), dy_at = b.put<T>(dy), dx_at = b.room<T>(count);
    softmax<T>(b.on(), y_at, x_at, tokens, width);
    softmax_dx<T>(b.on(), dx_at, dy_at, y_at, tokens, width);
    const numbers got = b.take<T>(y_at, count);
    numbers y(count), dx(count);
    for (int n = 0; n < tokens; ++n) {
      const std::size_t begin = static_cast<std::size_t>(n) * width;
      const double most = *std::max_element(x.begin() + begin, x.begin() + begin + width);
      double sum = 0, dot = 0;
      for (int c = 0; c < width; ++c) {
        sum += std::exp(x[begin + c] - most);
        dot += dy[begin + c] * got[begin + c];
      }
      for (int c = 0; c < width; ++c) {
        y[begin + c] = std::exp(x[begin + c] - most) / sum;
        dx[begin + c] = got[begin + c] * (dy[begin + c] - dot);
      }
    }
    check_rounded<T>("y", got, y);
    check_rounded<T>("dx", b.take<T>(dx_at, count), dx);
    softmax_dx<T>(b.on(), dy_at, dy_at, y_at, tokens, width);
    check_rounded<T>("dx in place of dy", b.take<T>(dy_at, count), dx);
    softmax<T>(b.on(), x_at, x_at, tokens, width);
    check_rounded<T>("y in place of x", b.take<T>(x_at, count), y);
  }
}

}  // namespace
}  // namespace rankc::runtime::cuda::test::softmax_test
