// SPDX-License-Identifier: Apache-2.0
#include "bench.hpp"

namespace rankc::cuda::test {
namespace {

double gelu_at(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}
double gelu_slope(double x) {
  const double h = 1e-5;
  return (gelu_at(x + h) - gelu_at(x - h)) / (2 * h);
}
double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// 4096: packs of 16 bytes; 1003: an odd count, so single elements.
constexpr std::size_t counts[] = {4096, 1003};

TEST_CASE_TEMPLATE("gelu and its gradient", T, float, bf16) {
  for (const std::size_t count : counts) {
    bench b;
    const numbers x = random_numbers<T>(count, 4.0, 1), dy = random_numbers<T>(count, 2.0, 2);
    const at x_at = b.put<T>(x), dy_at = b.put<T>(dy), y_at = b.room<T>(count), dx_at = b.room<T>(count);
    gelu<T>(b.of(), y_at, x_at, count);
    gelu_grad<T>(b.of(), dx_at, dy_at, x_at, count);
    numbers y(count), dx(count);
    for (std::size_t i = 0; i < count; ++i) {
      y[i] = gelu_at(x[i]);
      dx[i] = dy[i] * gelu_slope(x[i]);
    }
    check_rounded<T>("y", b.take<T>(y_at, count), y);
    check_rounded<T>("dx", b.take<T>(dx_at, count), dx);
    gelu_grad<T>(b.of(), dy_at, dy_at, x_at, count);
    check_rounded<T>("dx in place of dy", b.take<T>(dy_at, count), dx);
    gelu<T>(b.of(), x_at, x_at, count);
    check_rounded<T>("y in place of x", b.take<T>(x_at, count), y);
  }
}

TEST_CASE_TEMPLATE("swiglu and its gradient", T, float, bf16) {
  for (const std::size_t count : counts) {
    bench b;
    const numbers gate = random_numbers<T>(count, 4.0, 1), up = random_numbers<T>(count, 2.0, 2),
                  dy = random_numbers<T>(count, 2.0, 3);
    const at gate_at = b.put<T>(gate), up_at = b.put<T>(up), dy_at = b.put<T>(dy), y_at = b.room<T>(count),
             dgate_at = b.room<T>(count), dup_at = b.room<T>(count);
    swiglu<T>(b.of(), y_at, gate_at, up_at, count);
    swiglu_grad<T>(b.of(), dgate_at, dup_at, dy_at, gate_at, up_at, count);
    numbers y(count), dgate(count), dup(count);
    for (std::size_t i = 0; i < count; ++i) {
      const double s = sigmoid(gate[i]);
      y[i] = gate[i] * s * up[i];
      dgate[i] = dy[i] * up[i] * (s + gate[i] * s * (1 - s));
      dup[i] = dy[i] * gate[i] * s;
    }
    check_rounded<T>("y", b.take<T>(y_at, count), y);
    check_rounded<T>("dgate", b.take<T>(dgate_at, count), dgate);
    check_rounded<T>("dup", b.take<T>(dup_at, count), dup);
    swiglu<T>(b.of(), up_at, gate_at, up_at, count);
    check_rounded<T>("y in place of up", b.take<T>(up_at, count), y);
  }
}

TEST_CASE_TEMPLATE("add, in place too, and at addresses that allow no packs", T, float, bf16) {
  for (const std::size_t count : counts) {
    bench b;
    b.misplace();
    const numbers x = random_numbers<T>(count, 4.0, 1), y = random_numbers<T>(count, 2.0, 2);
    const at x_at = b.put<T>(x), y_at = b.put<T>(y), sum_at = b.room<T>(count);
    add<T>(b.of(), sum_at, x_at, y_at, count);
    add<T>(b.of(), x_at, x_at, y_at, count);
    numbers sum(count);
    for (std::size_t i = 0; i < count; ++i) sum[i] = rounded<T>(x[i] + y[i]);
    check_close("sum", b.take<T>(sum_at, count), sum, 0.0, 0.0);
    check_close("sum in place", b.take<T>(x_at, count), sum, 0.0, 0.0);
  }
}

TEST_CASE_TEMPLATE("clear leaves what lies beyond", T, float, bf16) {
  bench b;
  const at out = b.put<T>(numbers(100, 3.0));
  clear<T>(b.of(), out, 90);
  numbers wanted(100, 0.0);
  for (std::size_t i = 90; i < 100; ++i) wanted[i] = 3.0;
  check_close("out", b.take<T>(out, 100), wanted, 0.0, 0.0);
}

TEST_CASE("the working copy rounds to nearest even") {
  for (const std::size_t count : counts) {
    bench b;
    const numbers w = random_numbers<float>(count, 4.0, 1);
    const at w_at = b.put<float>(w), copy_at = b.room<bf16>(count);
    working_copy(b.of(), copy_at, w_at, count);
    numbers wanted(count);
    for (std::size_t i = 0; i < count; ++i) wanted[i] = rounded<bf16>(w[i]);
    check_close("copy", b.take<bf16>(copy_at, count), wanted, 0.0, 0.0);
  }
}

}  // namespace
}  // namespace rankc::cuda::test
