// SPDX-License-Identifier: Apache-2.0
#include "../bench.hpp"

namespace rankc::runtime::cuda::test::gates_test {
namespace {

double sigmoid_at(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// 4096: packs of 16 bytes; 1003: an odd count, so single elements.
constexpr std::size_t counts[] = {4096, 1003};

TEST_CASE_TEMPLATE("mul and its gradient, in place too", T, float, bf16) {
  for (const std::size_t count : counts) {
    bench b;
    const numbers x = random_numbers<T>(count, 4.0, 1), y = random_numbers<T>(count, 2.0, 2),
                  d = random_numbers<T>(count, 2.0, 3);
    const at x_at = b.put<T>(x), y_at = b.put<T>(y), d_at = b.put<T>(d), product_at = b.room<T>(count),
             dx_at = b.room<T>(count), dy_at = b.room<T>(count);
    mul<T>(b.on(), product_at, x_at, y_at, count);
    mul_grad<T>(b.on(), dx_at, dy_at, d_at, x_at, y_at, count);
    numbers product(count), dx(count), dy(count);
    for (std::size_t i = 0; i < count; ++i) {
      product[i] = rounded<T>(x[i] * y[i]);
      dx[i] = rounded<T>(d[i] * y[i]);
      dy[i] = rounded<T>(d[i] * x[i]);
    }
    check_close("product", b.take<T>(product_at, count), product, 0.0, 0.0);
    check_close("dx", b.take<T>(dx_at, count), dx, 0.0, 0.0);
    check_close("dy", b.take<T>(dy_at, count), dy, 0.0, 0.0);
    mul_grad<T>(b.on(), d_at, dy_at, d_at, x_at, y_at, count);
    check_close("dx in place of d", b.take<T>(d_at, count), dx, 0.0, 0.0);
    check_close("dy beside it", b.take<T>(dy_at, count), dy, 0.0, 0.0);
    mul<T>(b.on(), y_at, x_at, y_at, count);
    check_close("product in place", b.take<T>(y_at, count), product, 0.0, 0.0);
  }
}

TEST_CASE_TEMPLATE("mul_grad at addresses that allow no packs", T, float, bf16) {
  bench b;
  b.misplace();
  const numbers x = random_numbers<T>(4096, 4.0, 1), d = random_numbers<T>(4096, 2.0, 2);
  const at x_at = b.put<T>(x), d_at = b.put<T>(d), dx_at = b.room<T>(4096), dy_at = b.room<T>(4096);
  mul_grad<T>(b.on(), dx_at, dy_at, d_at, x_at, x_at, 4096);
  numbers dx(4096);
  for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = rounded<T>(d[i] * x[i]);
  check_close("dx", b.take<T>(dx_at, 4096), dx, 0.0, 0.0);
  check_close("dy", b.take<T>(dy_at, 4096), dx, 0.0, 0.0);
}

TEST_CASE_TEMPLATE("scale, in place too", T, float, bf16) {
  for (const std::size_t count : counts) {
    bench b;
    const numbers x = random_numbers<T>(count, 4.0, 1);
    const at x_at = b.put<T>(x), y_at = b.room<T>(count);
    scale<T>(b.on(), y_at, x_at, count, -0.75);
    numbers y(count);
    for (std::size_t i = 0; i < count; ++i) y[i] = rounded<T>(-0.75 * x[i]);
    check_close("y", b.take<T>(y_at, count), y, 0.0, 0.0);
    scale<T>(b.on(), x_at, x_at, count, -0.75);
    check_close("y in place", b.take<T>(x_at, count), y, 0.0, 0.0);
  }
}

TEST_CASE_TEMPLATE("the sigmoid and its gradient, to its far ends", T, float, bf16) {
  for (const std::size_t count : counts) {
    bench b;
    numbers x = random_numbers<T>(count, 8.0, 1);
    x[0] = -1000;
    x[1] = 1000;
    x[2] = 0;
    const numbers dy = random_numbers<T>(count, 2.0, 2);
    const at x_at = b.put<T>(x), y_at = b.room<T>(count), dy_at = b.put<T>(dy), dx_at = b.room<T>(count);
    sigmoid<T>(b.on(), y_at, x_at, count);
    sigmoid_grad<T>(b.on(), dx_at, dy_at, y_at, count);
    numbers y(count), dx(count);
    for (std::size_t i = 0; i < count; ++i) y[i] = sigmoid_at(x[i]);
    const numbers got = b.take<T>(y_at, count);
    check_rounded<T>("y", got, y);
    for (std::size_t i = 0; i < count; ++i) dx[i] = dy[i] * got[i] * (1.0 - got[i]);
    check_rounded<T>("dx", b.take<T>(dx_at, count), dx);
    sigmoid_grad<T>(b.on(), dy_at, dy_at, y_at, count);
    check_rounded<T>("dx in place of dy", b.take<T>(dy_at, count), dx);
    sigmoid<T>(b.on(), x_at, x_at, count);
    check_rounded<T>("y in place of x", b.take<T>(x_at, count), y);
  }
}

}  // namespace
}  // namespace rankc::runtime::cuda::test::gates_test
