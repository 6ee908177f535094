// SPDX-License-Identifier: Apache-2.0
// fp8 tensors, with one scale or one per row and column: they equal the host's rounding of each number, by
// rows and by columns, over several tiles and within one. Kernels that round their own results do the same.
#include "../bench.hpp"

#include <rankc/contract/fp8.hpp>

#include <algorithm>

namespace rankc::runtime::cuda::test::fp8_test {
namespace {

using runtime::fp8_layout, runtime::fp8_rows_layout;
using bytes = std::vector<unsigned char>;

struct size {
  int rows, columns;
  std::size_t count() const { return static_cast<std::size_t>(rows) * columns; }
};
template <class Layout>
Layout layout_of(size s) {
  return {static_cast<std::size_t>(s.rows), static_cast<std::size_t>(s.columns)};
}

/// A tensor's elements by rows and by columns, and its scales.
struct parts {
  bytes by_rows, by_columns;
  std::vector<float> row_factors, column_factors;
  bool operator==(const parts&) const = default;
};

template <class Layout>
at room_for(bench& b, size s) {
  return b.room<float>(layout_of<Layout>(s).bytes() / sizeof(float) + 1);
}

template <class V>
std::vector<V> copied(bench& b, at from, std::size_t count) {
  std::vector<V> all(count);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  REQUIRE(cudaMemcpy(all.data(), b.of().at<V>(from), count * sizeof(V), cudaMemcpyDeviceToHost) ==
          cudaSuccess);
  return all;
}
template <class Layout>
parts taken(bench& b, at q, size s) {
  const Layout l = layout_of<Layout>(s);
  parts p{copied<unsigned char>(b, q, s.count()),
          copied<unsigned char>(b, q + l.by_columns(), s.count()),
          {},
          {}};
  if constexpr (std::is_same_v<Layout, fp8_rows_layout>) {
    p.row_factors = copied<float>(b, q + l.row_factors(), l.rows);
    p.column_factors = copied<float>(b, q + l.column_factors(), l.columns);
  } else {
    p.row_factors = copied<float>(b, q + l.factor(), 1);
  }
  return p;
}

template <class F>
parts expected(const numbers& x, size s) {
  parts p{bytes(x.size()), bytes(x.size()), {}, {}};
  double largest = 0;
  for (const double v : x) largest = std::max(largest, std::abs(v));
  const float scale = runtime::fp8_scale<F>(static_cast<float>(largest));
  p.row_factors = {1 / scale};
  for (std::size_t i = 0; i < x.size(); ++i)
    p.by_rows[i] = p.by_columns[i % s.columns * s.rows + i / s.columns] =
        runtime::to_fp8<F>(static_cast<float>(x[i]) * scale).bits;
  return p;
}
parts expected_rows(const numbers& x, size s) {
  std::vector<double> of_rows(s.rows), of_columns(s.columns);
  for (std::size_t i = 0; i < x.size(); ++i)
    for (double* most : {&of_rows[i / s.columns], &of_columns[i % s.columns]})
      *most = std::max(*most, std::abs(x[i]));
  parts p{bytes(x.size()), bytes(x.size()), {}, {}};
  for (const double most : of_rows)
    p.row_factors.push_back(1 / runtime::fp8_row_scale(static_cast<float>(most)));
  for (const double most : of_columns)
    p.column_factors.push_back(1 / runtime::fp8_row_scale(static_cast<float>(most)));
  const auto bits = [](double x, float factor) {
    return runtime::to_fp8<runtime::e4m3>(static_cast<float>(x) * (1 / factor)).bits;
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t row = i / s.columns, column = i % s.columns;
    p.by_rows[i] = bits(x[i], p.row_factors[row]);
    p.by_columns[column * s.rows + row] = bits(x[i], p.column_factors[column]);
  }
  return p;
}

constexpr size sizes[]{{16, 16}, {144, 272}, {128, 128}, {400, 1600}};

TEST_CASE_TEMPLATE("numbers are rounded as on the host, by rows and by columns", T, float, bf16) {
  for (const size s : sizes)
    for (const double most : {3.0, 1e-5, 0.0}) {
      CAPTURE(s.rows);
      CAPTURE(most);
      bench b;
      numbers x = random_numbers<T>(s.count(), most, 1);
      for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = std::ldexp(x[i], static_cast<int>(i / s.columns % 5) - static_cast<int>(i % s.columns % 3));
      const at x_at = b.put<T>(x), q_at = room_for<fp8_layout>(b, s),
               rows_at = room_for<fp8_rows_layout>(b, s);
      to_e4m3<T>(b.on(), q_at, x_at, s.rows, s.columns);
      CHECK((taken<fp8_layout>(b, q_at, s) == expected<runtime::e4m3>(x, s)));
      to_e5m2<T>(b.on(), q_at, x_at, s.rows, s.columns);
      CHECK((taken<fp8_layout>(b, q_at, s) == expected<runtime::e5m2>(x, s)));
      // The second call overwrites the first result.
      for (int again = 0; again < 2; ++again) to_e4m3_rows<T>(b.on(), rows_at, x_at, s.rows, s.columns);
      CHECK((taken<fp8_rows_layout>(b, rows_at, s) == expected_rows(x, s)));
    }
}

TEST_CASE_TEMPLATE("a number that is none stays one, and so does infinity", T, float, bf16) {
  bench b;
  constexpr size s{32, 32};
  for (const double odd :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    numbers x = random_numbers<T>(s.count(), 1.0, 2);
    x[40] = odd;
    const at x_at = b.put<T>(x), q_at = room_for<fp8_layout>(b, s), rows_at = room_for<fp8_rows_layout>(b, s);
    const auto is_nan = [](unsigned char bits) {
      return std::isnan(runtime::from_fp8<double>(runtime::e4m3{bits}));
    };
    to_e4m3<T>(b.on(), q_at, x_at, s.rows, s.columns);
    CHECK(is_nan(taken<fp8_layout>(b, q_at, s).by_rows[40]));
    to_e4m3_rows<T>(b.on(), rows_at, x_at, s.rows, s.columns);
    const parts rows = taken<fp8_rows_layout>(b, rows_at, s);
    CHECK(is_nan(rows.by_rows[40]));
    CHECK(is_nan(rows.by_columns[40 % 32 * 32 + 40 / 32]));
  }
}

/// The casts, and the kernels that compute and cast.
template <class T>
struct by_tensor {
  using layout = fp8_layout;
  static constexpr auto cast = &to_e4m3<T>;
  static constexpr auto gradient_cast = &to_e5m2<T>;
  static constexpr auto gelu = &gelu_e4m3<T>;
  static constexpr auto swiglu = &swiglu_e4m3<T>;
  static constexpr auto swiglu_grad = &swiglu_grad_e5m2<T>;
  static constexpr auto layer_norm = &layer_norm_e4m3<T>;
  static constexpr auto rms_norm = &rms_norm_e4m3<T>;
};
template <class T>
struct by_rows {
  using layout = fp8_rows_layout;
  static constexpr auto cast = &to_e4m3_rows<T>;
  static constexpr auto gradient_cast = &to_e4m3_rows<T>;
  static constexpr auto gelu = &gelu_e4m3_rows<T>;
  static constexpr auto swiglu = &swiglu_e4m3_rows<T>;
  static constexpr auto swiglu_grad = &swiglu_grad_e4m3_rows<T>;
  static constexpr auto layer_norm = &layer_norm_e4m3_rows<T>;
  static constexpr auto rms_norm = &rms_norm_e4m3_rows<T>;
};

template <class T, class By>
void check_norms(size s, bool is_misplaced) {
  using layout = typename By::layout;
  bench b;
  const std::size_t aside = is_misplaced ? sizeof(T) : 0;
  const at x = b.put<T>(random_numbers<T>(s.count(), 3.0, 5));
  const at gain = b.put<T>(random_numbers<T>(s.columns + 1, 2.0, 6)) + aside,
           shift = b.put<T>(random_numbers<T>(s.columns + 1, 1.0, 7)) + aside;
  const at plain = b.room<T>(s.count()), stats = b.room<float>(2 * s.rows),
           wanted_stats = b.room<float>(2 * s.rows);
  const at apart = room_for<layout>(b, s), fused = room_for<layout>(b, s);
  layer_norm<T>(b.on(), plain, wanted_stats, x, gain, shift, s.rows, s.columns, 1e-5);
  By::cast(b.on(), apart, plain, s.rows, s.columns);
  By::layer_norm(b.on(), fused, stats, x, gain, shift, s.rows, s.columns, 1e-5);
  CHECK((taken<layout>(b, fused, s) == taken<layout>(b, apart, s)));
  CHECK((b.take<float>(stats, 2 * s.rows) == b.take<float>(wanted_stats, 2 * s.rows)));
  rms_norm<T>(b.on(), plain, wanted_stats, x, gain, s.rows, s.columns, 1e-5);
  By::cast(b.on(), apart, plain, s.rows, s.columns);
  By::rms_norm(b.on(), fused, stats, x, gain, s.rows, s.columns, 1e-5);
  CHECK((taken<layout>(b, fused, s) == taken<layout>(b, apart, s)));
  CHECK((b.take<float>(stats, s.rows) == b.take<float>(wanted_stats, s.rows)));
}

TEST_CASE_TEMPLATE("norms that round what they make give the bits of the two, and the same statistics", T,
                   float, bf16) {
  for (const size s : sizes)
    for (const bool is_misplaced : {false, true}) {
      CAPTURE(s.rows);
      CAPTURE(is_misplaced);
      check_norms<T, by_tensor<T>>(s, is_misplaced);
      check_norms<T, by_rows<T>>(s, is_misplaced);
    }
}

template <class T, class By>
void check_activations(size s) {
  using layout = typename By::layout;
  const size wide{s.rows, 2 * s.columns};
  bench b;
  const at gate_up = b.put<T>(random_numbers<T>(wide.count(), 3.0, 3)),
           dy = b.put<T>(random_numbers<T>(s.count(), 1.0, 4));
  const at gate = gate_up, up = gate_up + s.columns * sizeof(T), plain = b.room<T>(wide.count());
  const at apart = room_for<layout>(b, wide), fused = room_for<layout>(b, wide);
  swiglu<T>(b.on(), plain, gate, up, s.rows, s.columns, wide.columns);
  By::cast(b.on(), apart, plain, s.rows, s.columns);
  By::swiglu(b.on(), fused, gate, up, s.rows, s.columns, wide.columns);
  CHECK((taken<layout>(b, fused, s) == taken<layout>(b, apart, s)));
  gelu<T>(b.on(), plain, dy, s.count());
  By::cast(b.on(), apart, plain, s.rows, s.columns);
  By::gelu(b.on(), fused, dy, s.rows, s.columns);
  CHECK((taken<layout>(b, fused, s) == taken<layout>(b, apart, s)));
  swiglu_grad<T>(b.on(), plain, plain + s.columns * sizeof(T), dy, gate, up, s.rows, s.columns, wide.columns);
  By::gradient_cast(b.on(), apart, plain, s.rows, wide.columns);
  By::swiglu_grad(b.on(), fused, fused + s.columns, dy, gate, up, s.rows, s.columns, wide.columns);
  CHECK((taken<layout>(b, fused, wide) == taken<layout>(b, apart, wide)));
}

TEST_CASE_TEMPLATE("activations that round what they make give the bits of the two", T, float, bf16) {
  for (const size s : sizes) {
    CAPTURE(s.rows);
    check_activations<T, by_tensor<T>>(s);
    check_activations<T, by_rows<T>>(s);
  }
}

}  // namespace
}  // namespace rankc::runtime::cuda::test::fp8_test
