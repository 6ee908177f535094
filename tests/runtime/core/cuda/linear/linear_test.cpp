// SPDX-License-Identifier: Apache-2.0
#include "../bench.hpp"
#include "../fp8/twice_rounded.hpp"

namespace rankc::runtime::cuda::test::linear_test {
namespace {

struct shape {
  int tokens, in, out;
};
constexpr shape shapes[] = {{128, 96, 64}, {50, 24, 40}, {33, 17, 9}};

/// c (rows, cols) = sum over k of a(row, k) b(k, col).
template <class A, class B>
numbers product(int rows, int cols, int k, A a, B b) {
  numbers c(static_cast<std::size_t>(rows) * cols, 0.0);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j)
      for (int n = 0; n < k; ++n) c[static_cast<std::size_t>(i) * cols + j] += a(i, n) * b(n, j);
  return c;
}

TEST_CASE_TEMPLATE("linear, its input gradient and its weight gradient", T, float, bf16) {
  for (const auto [tokens, in, out] : shapes) {
    CAPTURE(tokens);
    CAPTURE(in);
    CAPTURE(out);
    bench b;
    const auto size = [](int rows, int cols) { return static_cast<std::size_t>(rows) * cols; };
    const numbers x = random_numbers<T>(size(tokens, in), 1.0, 1),
                  w = random_numbers<T>(size(out, in), 1.0, 2),
                  dy = random_numbers<T>(size(tokens, out), 1.0, 3),
                  old = random_numbers<T>(size(tokens, in), 1.0, 4);
    const auto x_of = [&](int n, int i) { return x[size(n, in) + i]; };
    const auto w_of = [&](int o, int i) { return w[size(o, in) + i]; };
    const auto dy_of = [&](int n, int o) { return dy[size(n, out) + o]; };
    const at x_at = b.put<T>(x), w_at = b.put<T>(w), dy_at = b.put<T>(dy),
             y_at = b.room<T>(size(tokens, out)), dx_at = b.room<T>(size(tokens, in)), old_at = b.put<T>(old),
             dw_at = b.room<float>(size(out, in));
    linear<T>(b.on(), y_at, x_at, w_at, tokens, in, out);
    check_rounded<T>("y", b.take<T>(y_at, size(tokens, out)),
                     product(tokens, out, in, x_of, [&](int i, int o) { return w_of(o, i); }), 10.0);

    numbers dx = product(tokens, in, out, dy_of, w_of);
    linear_dx<T>(b.on(), dx_at, dy_at, w_at, tokens, in, out, false);
    check_rounded<T>("dx", b.take<T>(dx_at, dx.size()), dx, 10.0);
    linear_dx<T>(b.on(), old_at, dy_at, w_at, tokens, in, out, true);
    numbers sum = dx;
    for (std::size_t i = 0; i < dx.size(); ++i) sum[i] += old[i];
    check_twice_rounded<T>("dx, accumulated", b.take<T>(old_at, dx.size()), sum, dx);

    numbers dw = product(out, in, tokens, [&](int o, int n) { return dy_of(n, o); }, x_of);
    linear_dw<T>(b.on(), dw_at, dy_at, x_at, tokens, in, out, false);
    check_close("dw", b.take<float>(dw_at, dw.size()), dw, 1e-5, 5e-5);
    linear_dw<T>(b.on(), dw_at, dy_at, x_at, tokens, in, out, true);
    for (double& d : dw) d *= 2;
    check_close("dw, accumulated", b.take<float>(dw_at, dw.size()), dw, 1e-5, 1e-4);
  }
}

TEST_CASE("linear at addresses that are multiples of 4 bytes only") {
  bench b;
  b.misplace();
  const numbers x = random_numbers<float>(64 * 32, 1.0, 1), w = random_numbers<float>(16 * 32, 1.0, 2);
  const at x_at = b.put<float>(x), w_at = b.put<float>(w), y_at = b.room<float>(64 * 16);
  linear<float>(b.on(), y_at, x_at, w_at, 64, 32, 16);
  check_rounded<float>("y", b.take<float>(y_at, 64 * 16),
                       product(
                           64, 16, 32, [&](int n, int i) { return x[static_cast<std::size_t>(n) * 32 + i]; },
                           [&](int i, int o) { return w[static_cast<std::size_t>(o) * 32 + i]; }),
                       10.0);
}

// Few outputs and a long sum: cuBLASLt splits k over blocks, and must combine the partial sums in f32.
TEST_CASE("bf16 products with a long sum are rounded once") {
  constexpr int tokens = 16, in = 8192, out = 24;
  bench b;
  const numbers x = random_numbers<bf16>(std::size_t{tokens} * in, 1.0, 1),
                w = random_numbers<bf16>(std::size_t{out} * in, 1.0, 2);
  const at x_at = b.put<bf16>(x), w_at = b.put<bf16>(w), y_at = b.room<bf16>(tokens * out);
  const numbers wanted = product(
      tokens, out, in, [&](int n, int i) { return x[static_cast<std::size_t>(n) * in + i]; },
      [&](int i, int o) { return w[static_cast<std::size_t>(o) * in + i]; });
  linear<bf16>(b.on(), y_at, x_at, w_at, tokens, in, out);
  // Partial sums of 8192 terms reach some 60, so f32 accumulation itself is off by up to about 1e-3.
  check_rounded<bf16>("y", b.take<bf16>(y_at, tokens * out), wanted, 1000.0);
}

struct products_of_a_layer {
  numbers y, dw;
};

/// y, and dw accumulated twice, for one shape in a separate bench. `captured`: the shapes are first met
/// during capture.
products_of_a_layer run_layer(bool deterministic, bool captured) {
  constexpr int tokens = 512, in = 256, out = 128;
  bench b;
  description about = *b.of().about;
  about.deterministic = deterministic;
  b.of().about = &about;
  const at x = b.put<bf16>(random_numbers<bf16>(tokens * in, 1.0, 1));
  const at w = b.put<bf16>(random_numbers<bf16>(out * in, 1.0, 2));
  const at dy = b.put<bf16>(random_numbers<bf16>(tokens * out, 1.0, 3));
  const at y = b.room<bf16>(tokens * out);
  const at dw = b.put<float>(numbers(out * in, 0.0));
  const auto body = [&] {
    const lane& r = b.on();
    linear<bf16>(r, y, x, w, tokens, in, out);
    for (int i = 0; i < 2; ++i) linear_dw<bf16>(r, dw, dy, x, tokens, in, out, true);
  };
  if (captured) {
    const cudaGraphExec_t graph = b.owner().capture(body);
    CHECK(cudaGraphLaunch(graph, b.on().stream) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    cudaGraphExecDestroy(graph);
  } else body();
  return {b.take<bf16>(y, tokens * out), b.take<float>(dw, out * in)};
}

TEST_CASE(
    "a deterministic program gets the same bits each time, and a shape first met in a capture is right") {
  const auto first = run_layer(true, false), second = run_layer(true, false), graph = run_layer(true, true);
  CHECK(first.y == second.y);
  CHECK(first.dw == second.dw);
  CHECK(first.y == graph.y);
  CHECK(first.dw == graph.dw);
  const auto tuned = run_layer(false, false), untuned = run_layer(false, true);
  check_close("y", tuned.y, first.y, 4 * half_unit<bf16>, 1e-3);  // two results rounded once each
  check_close("dw", tuned.dw, first.dw, 1e-5, 1e-3);
  CHECK(untuned.dw == first.dw);
}

}  // namespace
}  // namespace rankc::runtime::cuda::test::linear_test
