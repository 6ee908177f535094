// SPDX-License-Identifier: Apache-2.0
// Tensors of eight bits: the same as the host's rounding of each number, by rows and by columns, past tiles and within one; and
// what kernels round that make the numbers.
#include "bench.hpp"

#include <rankc/runtime/fp8.hpp>

#include <algorithm>

namespace rankc::cuda::test::fp8_test {
namespace {

using runtime::fp8_layout;
using bytes = std::vector<unsigned char>;

at room_for(bench& b, std::size_t elements) { return b.room<float>(fp8_layout{elements}.bytes() / sizeof(float) + 1); }

/// Elements by rows, by columns, and the factor.
bytes taken(bench& b, at q, std::size_t elements) {
  const fp8_layout parts{elements};
  bytes all(parts.factor() + sizeof(float));
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  REQUIRE(cudaMemcpy(all.data(), b.of().at<unsigned char>(q), all.size(), cudaMemcpyDeviceToHost) == cudaSuccess);
  std::fill(all.begin() + static_cast<std::ptrdiff_t>(elements), all.begin() + static_cast<std::ptrdiff_t>(parts.by_columns()), 0);
  std::fill(all.begin() + static_cast<std::ptrdiff_t>(parts.by_columns() + elements), all.begin() + static_cast<std::ptrdiff_t>(parts.factor()), 0);
  return all;
}

template <class F>
bytes expected(const numbers& x, int rows, int columns) {
  const fp8_layout parts{x.size()};
  bytes all(parts.factor() + sizeof(float), 0);
  double largest = 0;
  for (const double v : x) largest = std::max(largest, std::abs(v));
  const float scale = runtime::fp8_scale<F>(static_cast<float>(largest)), factor = 1 / scale;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t row = i / columns, column = i % columns;
    all[i] = all[parts.by_columns() + column * rows + row] = runtime::to_fp8<F>(static_cast<float>(x[i]) * scale).bits;
  }
  std::memcpy(all.data() + parts.factor(), &factor, sizeof factor);
  return all;
}

struct size {
  int rows, columns;
};
constexpr size sizes[]{{16, 16}, {144, 272}, {128, 128}, {400, 1600}};

TEST_CASE_TEMPLATE("numbers are rounded as on the host, by rows and by columns", T, float, bf16) {
  for (const auto [rows, columns] : sizes)
    for (const double most : {3.0, 1e-5, 0.0}) {
      CAPTURE(rows);
      CAPTURE(most);
      bench b;
      const std::size_t count = static_cast<std::size_t>(rows) * columns;
      const numbers x = random_numbers<T>(count, most, 1);
      const at x_at = b.put<T>(x), q_at = room_for(b, count);
      to_e4m3<T>(b.on(), q_at, x_at, rows, columns);
      CHECK((taken(b, q_at, count) == expected<runtime::e4m3>(x, rows, columns)));
      to_e5m2<T>(b.on(), q_at, x_at, rows, columns);
      CHECK((taken(b, q_at, count) == expected<runtime::e5m2>(x, rows, columns)));
    }
}

TEST_CASE_TEMPLATE("a number that is none stays one, and so does infinity", T, float, bf16) {
  bench b;
  numbers x = random_numbers<T>(32 * 32, 1.0, 2);
  x[40] = std::numeric_limits<double>::quiet_NaN();
  const at x_at = b.put<T>(x), q_at = room_for(b, x.size());
  to_e4m3<T>(b.on(), q_at, x_at, 32, 32);
  CHECK(std::isnan(runtime::from_fp8<double>(runtime::e4m3{taken(b, q_at, x.size())[40]})));
  x[40] = std::numeric_limits<double>::infinity();
  to_e4m3<T>(b.on(), q_at, b.put<T>(x), 32, 32);
  CHECK(std::isnan(runtime::from_fp8<double>(runtime::e4m3{taken(b, q_at, x.size())[40]})));
}

TEST_CASE_TEMPLATE("norms that round what they make give the bits of the two, and the same statistics", T, float, bf16) {
  for (const auto [rows, columns] : sizes)
    for (const bool is_misplaced : {false, true}) {
      CAPTURE(rows);
      CAPTURE(is_misplaced);
      bench b;
      const std::size_t count = static_cast<std::size_t>(rows) * columns, aside = is_misplaced ? sizeof(T) : 0;
      const at x = b.put<T>(random_numbers<T>(count, 3.0, 5));
      const at gain = b.put<T>(random_numbers<T>(columns + 1, 2.0, 6)) + aside, shift = b.put<T>(random_numbers<T>(columns + 1, 1.0, 7)) + aside;
      const at plain = b.room<T>(count), stats = b.room<float>(2 * rows), wanted_stats = b.room<float>(2 * rows);
      const at apart = room_for(b, count), fused = room_for(b, count);
      layer_norm<T>(b.on(), plain, wanted_stats, x, gain, shift, rows, columns, 1e-5);
      to_e4m3<T>(b.on(), apart, plain, rows, columns);
      layer_norm_e4m3<T>(b.on(), fused, stats, x, gain, shift, rows, columns, 1e-5);
      CHECK((taken(b, fused, count) == taken(b, apart, count)));
      CHECK((b.take<float>(stats, 2 * rows) == b.take<float>(wanted_stats, 2 * rows)));
      rms_norm<T>(b.on(), plain, wanted_stats, x, gain, rows, columns, 1e-5);
      to_e4m3<T>(b.on(), apart, plain, rows, columns);
      rms_norm_e4m3<T>(b.on(), fused, stats, x, gain, rows, columns, 1e-5);
      CHECK((taken(b, fused, count) == taken(b, apart, count)));
      CHECK((b.take<float>(stats, rows) == b.take<float>(wanted_stats, rows)));
    }
}

TEST_CASE_TEMPLATE("activations that round what they make give the bits of the two", T, float, bf16) {
  for (const auto [rows, columns] : sizes) {
    CAPTURE(rows);
    bench b;
    const std::size_t count = static_cast<std::size_t>(rows) * columns;
    const at gate_up = b.put<T>(random_numbers<T>(2 * count, 3.0, 3)), dy = b.put<T>(random_numbers<T>(count, 1.0, 4));
    const at gate = gate_up, up = gate_up + columns * sizeof(T), plain = b.room<T>(2 * count);
    const at apart = room_for(b, 2 * count), fused = room_for(b, 2 * count);
    swiglu<T>(b.on(), plain, gate, up, rows, columns, 2 * columns);
    to_e4m3<T>(b.on(), apart, plain, rows, columns);
    swiglu_e4m3<T>(b.on(), fused, gate, up, rows, columns, 2 * columns);
    CHECK((taken(b, fused, count) == taken(b, apart, count)));
    gelu<T>(b.on(), plain, dy, count);
    to_e4m3<T>(b.on(), apart, plain, rows, columns);
    gelu_e4m3<T>(b.on(), fused, dy, rows, columns);
    CHECK((taken(b, fused, count) == taken(b, apart, count)));
    swiglu_grad<T>(b.on(), plain, plain + columns * sizeof(T), dy, gate, up, rows, columns, 2 * columns);
    to_e5m2<T>(b.on(), apart, plain, rows, 2 * columns);
    swiglu_grad_e5m2<T>(b.on(), fused, fused + columns, dy, gate, up, rows, columns, 2 * columns);
    CHECK((taken(b, fused, 2 * count) == taken(b, apart, 2 * count)));
  }
}

}  // namespace
}  // namespace rankc::cuda::test::fp8_test
