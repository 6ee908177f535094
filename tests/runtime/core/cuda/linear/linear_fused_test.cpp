// SPDX-License-Identifier: Apache-2.0
// Linear layers with an epilogue. bf16 sizes in multiples of 8 use cuBLASLt's epilogues, others are composed;
// both are compared with the same reference.
#include "../bench.hpp"
#include "../fp8/twice_rounded.hpp"

#include <algorithm>

namespace rankc::runtime::cuda::test::fused_linear_test {
namespace {

struct shape {
  int tokens, in, out;
};
constexpr shape shapes[] = {{128, 96, 64}, {256, 64, 512}, {50, 24, 40}, {33, 17, 9}};

std::size_t size(int rows, int cols) { return static_cast<std::size_t>(rows) * cols; }

double gelu_at(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}
double gelu_slope(double x) {
  const double h = 1e-5;
  return (gelu_at(x + h) - gelu_at(x - h)) / (2 * h);
}

/// A layer's operands on host and device, and its f64 results. Sums stay within a few units.
template <class T>
struct layer {
  int tokens, in, out;
  bench& on;
  numbers x, w, b, dy, residual, before, y, dx, dw, sums;
  at x_at, w_at, b_at, dy_at, before_at;

  layer(bench& on, shape s) : tokens(s.tokens), in(s.in), out(s.out), on(on) {
    x = random_numbers<T>(size(tokens, in), 1.0, 1);
    w = random_numbers<T>(size(out, in), 0.5, 2);
    b = random_numbers<T>(out, 1.0, 3);
    dy = random_numbers<T>(size(tokens, out), 1.0, 4);
    residual = random_numbers<T>(size(tokens, out), 2.0, 5);
    before = random_numbers<T>(size(tokens, in), 3.0, 6);
    y.assign(size(tokens, out), 0.0);
    dx.assign(size(tokens, in), 0.0);
    dw.assign(size(out, in), 0.0);
    sums.assign(out, 0.0);
    for (int n = 0; n < tokens; ++n)
      for (int o = 0; o < out; ++o) {
        const double d = dy[size(n, out) + o];
        sums[o] += d;
        for (int i = 0; i < in; ++i) {
          y[size(n, out) + o] += x[size(n, in) + i] * w[size(o, in) + i];
          dx[size(n, in) + i] += d * w[size(o, in) + i];
          dw[size(o, in) + i] += d * x[size(n, in) + i];
        }
      }
    x_at = on.put<T>(x);
    w_at = on.put<T>(w);
    b_at = on.put<T>(b);
    dy_at = on.put<T>(dy);
    before_at = on.put<T>(before);
  }

  numbers with_bias() const {
    numbers sum = y;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += b[i % out];
    return sum;
  }
};

template <class F>
numbers mapped(const numbers& a, F f) {
  numbers made(a.size());
  std::transform(a.begin(), a.end(), made.begin(), f);
  return made;
}
numbers plus(const numbers& a, const numbers& b) {
  numbers made(a.size());
  std::transform(a.begin(), a.end(), b.begin(), made.begin(), [](double p, double q) { return p + q; });
  return made;
}

double magnitude(double v) { return std::abs(v); }

TEST_CASE_TEMPLATE("linear with a bias, a residual, and both", T, float, bf16) {
  for (const shape s : shapes) {
    CAPTURE(s.tokens);
    CAPTURE(s.out);
    bench bench_;
    layer<T> l(bench_, s);
    const lane& r = bench_.on();
    const std::size_t count = size(s.tokens, s.out);
    const at y_at = bench_.room<T>(count), residual_at = bench_.put<T>(l.residual);
    const numbers sum = plus(l.y, l.residual), all = plus(l.with_bias(), l.residual);
    // cuBLASLt's epilogue has one rounded intermediate; the composed kernels have three.
    const bool composed = s.in % 8 != 0 || s.out % 8 != 0 || std::is_same_v<T, float>;
    const numbers between = mapped(l.with_bias(), magnitude),
                  larger = composed ? plus(plus(mapped(l.y, magnitude), mapped(sum, magnitude)), between)
                                    : between;
    linear_bias<T>(r, y_at, l.x_at, l.w_at, l.b_at, s.tokens, s.in, s.out);
    if (composed) check_twice_rounded<T>("bias", bench_.take<T>(y_at, count), l.with_bias(), l.y);
    else check_rounded<T>("bias", bench_.take<T>(y_at, count), l.with_bias(), 10.0);
    linear_add<T>(r, y_at, l.x_at, l.w_at, residual_at, s.tokens, s.in, s.out);
    check_twice_rounded<T>("residual", bench_.take<T>(y_at, count), sum, l.y);
    check_close("the residual is left", bench_.take<T>(residual_at, count), l.residual, 0.0, 0.0);
    linear_bias_add<T>(r, y_at, l.x_at, l.w_at, l.b_at, residual_at, s.tokens, s.in, s.out);
    check_twice_rounded<T>("bias and residual", bench_.take<T>(y_at, count), all, larger);

    bench fresh;  // without plans: tuning of the new shape runs on the residual itself
    layer<T> again(fresh, s);
    const at in_place = fresh.put<T>(l.residual);
    linear_add<T>(fresh.on(), in_place, again.x_at, again.w_at, in_place, s.tokens, s.in, s.out);
    check_twice_rounded<T>("residual in place", fresh.take<T>(in_place, count), sum, l.y);
    const at in_place2 = fresh.put<T>(l.residual);
    linear_bias_add<T>(fresh.on(), in_place2, again.x_at, again.w_at, again.b_at, in_place2, s.tokens, s.in,
                       s.out);
    check_twice_rounded<T>("bias and residual in place", fresh.take<T>(in_place2, count), all, larger);
  }
}

TEST_CASE_TEMPLATE("linear and gelu keep what gelu was taken of", T, float, bf16) {
  for (const shape s : shapes) {
    CAPTURE(s.tokens);
    CAPTURE(s.out);
    bench bench_;
    layer<T> l(bench_, s);
    const lane& r = bench_.on();
    const std::size_t count = size(s.tokens, s.out);
    const at y_at = bench_.room<T>(count), before_at = bench_.room<T>(count);
    linear_gelu<T>(r, y_at, before_at, l.x_at, l.w_at, s.tokens, s.in, s.out);
    // gelu's slope is at most 1.13.
    check_rounded<T>("before", bench_.take<T>(before_at, count), l.y, 10.0);
    check_twice_rounded<T>("y", bench_.take<T>(y_at, count), mapped(l.y, gelu_at), l.y, 1.13);
    linear_bias_gelu<T>(r, y_at, before_at, l.x_at, l.w_at, l.b_at, s.tokens, s.in, s.out);
    const numbers before = l.with_bias();
    const numbers larger = plus(mapped(before, magnitude), mapped(l.y, magnitude));
    check_twice_rounded<T>("before, with bias", bench_.take<T>(before_at, count), before, l.y);
    check_twice_rounded<T>("y, with bias", bench_.take<T>(y_at, count), mapped(before, gelu_at), larger,
                           1.13);
  }
}

TEST_CASE_TEMPLATE("input gradient through gelu, and its sums", T, float, bf16) {
  for (const shape s : shapes) {
    CAPTURE(s.tokens);
    CAPTURE(s.in);
    bench bench_;
    layer<T> l(bench_, s);
    const lane& r = bench_.on();
    const std::size_t count = size(s.tokens, s.in);
    numbers dx(count), db(s.in, 0.0), slack(s.in, 0.0);
    for (std::size_t i = 0; i < count; ++i) {
      dx[i] = l.dx[i] * gelu_slope(l.before[i]);
      db[i % s.in] += dx[i];
      slack[i % s.in] += 2 * half_unit<T> * (std::abs(dx[i]) + 1.13 * std::abs(l.dx[i]));
    }
    const at dx_at = bench_.room<T>(count), db_at = bench_.room<float>(s.in);
    linear_dx_gelu<T>(r, dx_at, l.dy_at, l.w_at, l.before_at, s.tokens, s.in, s.out);
    check_twice_rounded<T>("dx", bench_.take<T>(dx_at, count), dx, l.dx, 1.13);
    const numbers alone = bench_.take<T>(dx_at, count);
    for (const bool accumulate : {false, true}) {
      linear_dx_gelu_bias<T>(r, dx_at, db_at, l.dy_at, l.w_at, l.before_at, s.tokens, s.in, s.out,
                             accumulate);
      check_twice_rounded<T>("dx, with sums", bench_.take<T>(dx_at, count), dx, l.dx, 1.13);
      const numbers got = bench_.take<float>(db_at, s.in);
      for (int c = 0; c < s.in; ++c) {
        const double times = accumulate ? 2.0 : 1.0;
        CAPTURE(c);
        // f32 sums of numbers that were rounded once or twice to T.
        CHECK(std::abs(got[c] - times * db[c]) <= times * (slack[c] + 1e-4));
      }
    }
  }
}

TEST_CASE_TEMPLATE("weight gradient, and the sums of dy in f32", T, float, bf16) {
  for (const shape s : shapes) {
    CAPTURE(s.tokens);
    CAPTURE(s.out);
    bench bench_;
    layer<T> l(bench_, s);
    const lane& r = bench_.on();
    const at dw_at = bench_.room<float>(l.dw.size()), db_at = bench_.room<float>(s.out);
    for (const double times : {1.0, 2.0}) {
      linear_dw_bias<T>(r, dw_at, db_at, l.dy_at, l.x_at, s.tokens, s.in, s.out, times > 1.0);
      const auto scaled = [&](double v) { return times * v; };
      check_close("dw", bench_.take<float>(dw_at, l.dw.size()), mapped(l.dw, scaled), 1e-5, 1e-4);
      check_close("db", bench_.take<float>(db_at, s.out), mapped(l.sums, scaled), 1e-5, 1e-4);
    }
  }
}

TEST_CASE("addresses that no epilogue allows") {
  bench bench_;
  bench_.misplace();
  const shape s{64, 32, 48};
  layer<bf16> l(bench_, s);
  const lane& r = bench_.on();
  const std::size_t count = size(s.tokens, s.out);
  const at y_at = bench_.room<bf16>(count), before_at = bench_.room<bf16>(count),
           db_at = bench_.room<float>(s.out), dw_at = bench_.room<float>(l.dw.size());
  linear_bias<bf16>(r, y_at, l.x_at, l.w_at, l.b_at, s.tokens, s.in, s.out);
  check_twice_rounded<bf16>("bias", bench_.take<bf16>(y_at, count), l.with_bias(), l.y);
  linear_gelu<bf16>(r, y_at, before_at, l.x_at, l.w_at, s.tokens, s.in, s.out);
  check_twice_rounded<bf16>("gelu", bench_.take<bf16>(y_at, count), mapped(l.y, gelu_at), l.y, 1.13);
  linear_dw_bias<bf16>(r, dw_at, db_at, l.dy_at, l.x_at, s.tokens, s.in, s.out, false);
  check_close("dw", bench_.take<float>(dw_at, l.dw.size()), l.dw, 1e-5, 1e-4);
  check_close("db", bench_.take<float>(db_at, s.out), l.sums, 1e-5, 1e-4);
}

}  // namespace
}  // namespace rankc::runtime::cuda::test::fused_linear_test
