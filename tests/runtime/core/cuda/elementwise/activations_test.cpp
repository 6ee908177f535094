// SPDX-License-Identifier: Apache-2.0
#include "../bench.hpp"

#include "../../../../../runtime/core/cuda/linear/gelu_sums.hpp"

namespace rankc::runtime::cuda::test::activations_test {
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
    gelu<T>(b.on(), y_at, x_at, count);
    gelu_grad<T>(b.on(), dx_at, dy_at, x_at, count);
    numbers y(count), dx(count);
    for (std::size_t i = 0; i < count; ++i) {
      y[i] = gelu_at(x[i]);
      dx[i] = dy[i] * gelu_slope(x[i]);
    }
    check_rounded<T>("y", b.take<T>(y_at, count), y);
    check_rounded<T>("dx", b.take<T>(dx_at, count), dx);
    gelu_grad<T>(b.on(), dy_at, dy_at, x_at, count);
    check_rounded<T>("dx in place of dy", b.take<T>(dy_at, count), dx);
    gelu<T>(b.on(), x_at, x_at, count);
    check_rounded<T>("y in place of x", b.take<T>(x_at, count), y);
  }
}

TEST_CASE_TEMPLATE("gelu's gradient with that of the bias before it is the two one by one", T, float, bf16) {
  for (const auto& [tokens, width] : {std::pair{1231, 1608}, {37, 50}, {1, 8}}) {
    CAPTURE(tokens);
    bench b;
    const std::size_t count = static_cast<std::size_t>(tokens) * width;
    const at x_at = b.put<T>(random_numbers<T>(count, 4.0, 1)),
             dy_at = b.put<T>(random_numbers<T>(count, 2.0, 2));
    const at dx_at = b.room<T>(count), db_at = b.room<float>(width), wanted_dx = b.room<T>(count),
             wanted_db = b.room<float>(width);
    gelu_grad<T>(b.on(), wanted_dx, dy_at, x_at, count);
    bias_grad<T>(b.on(), wanted_db, wanted_dx, tokens, width, false);
    gelu_grad_bias<T>(b.on(), dx_at, db_at, dy_at, x_at, tokens, width, false);
    CHECK((b.take<T>(dx_at, count) == b.take<T>(wanted_dx, count)));
    CHECK((b.take<float>(db_at, width) == b.take<float>(wanted_db, width)));
    bias_grad<T>(b.on(), wanted_db, wanted_dx, tokens, width, true);
    gelu_grad_bias<T>(b.on(), dy_at, db_at, dy_at, x_at, tokens, width, true);
    CHECK((b.take<T>(dy_at, count) == b.take<T>(wanted_dx, count)));
    CHECK((b.take<float>(db_at, width) == b.take<float>(wanted_db, width)));
  }
}

/// Rows of `width` numbers, `stride` apart, with NaN in between.
numbers spread(const numbers& rows, int width, int stride) {
  numbers wider(rows.size() / width * stride, std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < rows.size(); ++i) wider[i / width * stride + i % width] = rows[i];
  return wider;
}
numbers gathered(const numbers& wider, int width, int stride) {
  numbers rows(wider.size() / stride * width);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = wider[i / width * stride + i % width];
  return rows;
}

TEST_CASE_TEMPLATE("swiglu and its gradient", T, float, bf16) {
  struct shape {
    int tokens, width, stride;
  };
  // Packs; packs in a wider buffer, an odd number of tokens; a stride, then a width, that allow none.
  for (const auto [tokens, width, stride] :
       {shape{16, 256, 256}, shape{33, 64, 128}, shape{9, 64, 67}, shape{7, 51, 102}}) {
    CAPTURE(width);
    CAPTURE(stride);
    bench b;
    const std::size_t count = static_cast<std::size_t>(tokens) * width,
                      wider = static_cast<std::size_t>(tokens) * stride;
    const numbers gate = random_numbers<T>(count, 4.0, 1), up = random_numbers<T>(count, 2.0, 2),
                  dy = random_numbers<T>(count, 2.0, 3);
    const at gate_at = b.put<T>(spread(gate, width, stride)), up_at = b.put<T>(spread(up, width, stride)),
             dy_at = b.put<T>(dy), y_at = b.room<T>(count), dgate_at = b.room<T>(wider),
             dup_at = b.room<T>(wider);
    swiglu<T>(b.on(), y_at, gate_at, up_at, tokens, width, stride);
    swiglu_grad<T>(b.on(), dgate_at, dup_at, dy_at, gate_at, up_at, tokens, width, stride);
    numbers y(count), dgate(count), dup(count);
    for (std::size_t i = 0; i < count; ++i) {
      const double s = sigmoid(gate[i]);
      y[i] = gate[i] * s * up[i];
      dgate[i] = dy[i] * up[i] * (s + gate[i] * s * (1 - s));
      dup[i] = dy[i] * gate[i] * s;
    }
    check_rounded<T>("y", b.take<T>(y_at, count), y);
    const numbers got = b.take<T>(dgate_at, wider);
    check_rounded<T>("dgate", gathered(got, width, stride), dgate);
    check_rounded<T>("dup", gathered(b.take<T>(dup_at, wider), width, stride), dup);
    for (std::size_t i = 0; i < wider; ++i)
      if (static_cast<int>(i % stride) >= width) REQUIRE(std::isnan(got[i]));
    swiglu_grad<T>(b.on(), gate_at, up_at, dy_at, gate_at, up_at, tokens, width, stride);
    check_rounded<T>("dgate in place", gathered(b.take<T>(gate_at, wider), width, stride), dgate);
    check_rounded<T>("dup in place", gathered(b.take<T>(up_at, wider), width, stride), dup);
  }
}

TEST_CASE_TEMPLATE("gelu far from zero is 0 or x, and its slope 0 or 1", T, float, bf16) {
  bench b;
  const numbers x = {-1000, -100, -20, 20, 100, 1000, 0, -0.0}, ones(8, 1.0);
  const at x_at = b.put<T>(x), ones_at = b.put<T>(ones), y_at = b.room<T>(8), dx_at = b.room<T>(8);
  gelu<T>(b.on(), y_at, x_at, 8);
  gelu_grad<T>(b.on(), dx_at, ones_at, x_at, 8);
  check_close("y", b.take<T>(y_at, 8), {0, 0, 0, 20, 100, 1000, 0, 0}, 1e-6, 1e-6);
  check_close("dx", b.take<T>(dx_at, 8), {0, 0, 0, 1, 1, 1, 0.5, 0.5}, 1e-6, 1e-6);
}

TEST_CASE_TEMPLATE("add, in place too, and at addresses that allow no packs", T, float, bf16) {
  for (const std::size_t count : counts) {
    bench b;
    b.misplace();
    const numbers x = random_numbers<T>(count, 4.0, 1), y = random_numbers<T>(count, 2.0, 2);
    const at x_at = b.put<T>(x), y_at = b.put<T>(y), sum_at = b.room<T>(count);
    add<T>(b.on(), sum_at, x_at, y_at, count);
    add<T>(b.on(), x_at, x_at, y_at, count);
    numbers sum(count);
    for (std::size_t i = 0; i < count; ++i) sum[i] = rounded<T>(x[i] + y[i]);
    check_close("sum", b.take<T>(sum_at, count), sum, 0.0, 0.0);
    check_close("sum in place", b.take<T>(x_at, count), sum, 0.0, 0.0);
  }
}

TEST_CASE_TEMPLATE("clear leaves what lies beyond", T, float, bf16) {
  bench b;
  const at out = b.put<T>(numbers(100, 3.0));
  clear<T>(b.on(), out, 90);
  numbers wanted(100, 0.0);
  for (std::size_t i = 90; i < 100; ++i) wanted[i] = 3.0;
  check_close("out", b.take<T>(out, 100), wanted, 0.0, 0.0);
}

TEST_CASE("the working copy rounds to nearest even") {
  for (const std::size_t count : counts) {
    bench b;
    const numbers w = random_numbers<float>(count, 4.0, 1);
    const at w_at = b.put<float>(w), copy_at = b.room<bf16>(count);
    working_copy(b.on(), copy_at, w_at, count);
    numbers wanted(count);
    for (std::size_t i = 0; i < count; ++i) wanted[i] = rounded<bf16>(w[i]);
    check_close("copy", b.take<bf16>(copy_at, count), wanted, 0.0, 0.0);
  }
}

}  // namespace
}  // namespace rankc::runtime::cuda::test::activations_test
