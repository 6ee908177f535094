// SPDX-License-Identifier: Apache-2.0
#include "../bench.hpp"

namespace rankc::runtime::cuda::test::padding_test {
namespace {

TEST_CASE_TEMPLATE("padding is masked, and its gradient is 0, in place too", T, float, bf16) {
  constexpr int tokens = 5, columns = 300;
  // Whole; without padding; with some; padding alone.
  for (const auto& [first, width] : {std::pair{0, 512}, {0, 200}, {200, 200}, {400, 200}}) {
    CAPTURE(first);
    bench b;
    const std::size_t count = static_cast<std::size_t>(tokens) * width;
    const numbers x = random_numbers<T>(count, 4.0, 1);
    numbers y = x, dx = x;
    for (std::size_t i = 0; i < count; ++i)
      if (first + static_cast<int>(i % width) >= columns) {
        y[i] = -0x1p100;
        dx[i] = 0;
      }
    const at x_at = b.put<T>(x), y_at = b.room<T>(count), dx_at = b.room<T>(count);
    mask_padding<T>(b.on(), y_at, x_at, tokens, width, first, columns);
    mask_padding_grad<T>(b.on(), dx_at, x_at, tokens, width, first, columns);
    CHECK(b.take<T>(y_at, count) == y);
    CHECK(b.take<T>(dx_at, count) == dx);
    mask_padding<T>(b.on(), x_at, x_at, tokens, width, first, columns);
    CHECK(b.take<T>(x_at, count) == y);
    mask_padding_grad<T>(b.on(), x_at, x_at, tokens, width, first, columns);
    CHECK(b.take<T>(x_at, count) == dx);
  }
}

}  // namespace
}  // namespace rankc::runtime::cuda::test::padding_test
