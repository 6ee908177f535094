// SPDX-License-Identifier: Apache-2.0
// fp8 numbers, and the layout of fp8 tensors for GEMMs. A tensor stores its elements twice, by rows and by
// columns, because an fp8 GEMM reads every operand along the dimension that it sums over. A tensor has either
// one scale, or a scale for each row and, for the elements by columns, one for each column.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace rankc::runtime {

/// e4m3: a sign, four exponent bits and three mantissa bits; numbers up to 448, and no infinities.
/// Source: Micikevicius et al. 2022.
struct e4m3 {
  unsigned char bits;
  static constexpr int mantissa = 3, bias = 7;
  static constexpr double largest = 448;
  static constexpr unsigned char nan = 0x7F;
};
/// e5m2: a sign, five exponent bits and two mantissa bits; numbers up to 57,344, and infinities beyond.
struct e5m2 {
  unsigned char bits;
  static constexpr int mantissa = 2, bias = 15;
  static constexpr double largest = 57344;
  static constexpr unsigned char nan = 0x7F;
};

/// An e4m3 of a tensor with a scale for each row. Its elements by columns have a scale for each column.
struct e4m3_rows : e4m3 {};

constexpr std::size_t fp8_aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

/// The offsets of the parts of an fp8 tensor with one scale: elements by rows, elements by columns, the
/// dequantization factor, and room for partial maxima of the source tensor.
/// Units: bytes.
struct fp8_layout {
  std::size_t rows, columns;
  static constexpr std::size_t most_maxima = 1024;
  constexpr std::size_t by_columns() const { return fp8_aligned(rows * columns); }
  constexpr std::size_t factor() const { return 2 * by_columns(); }
  constexpr std::size_t maxima() const { return factor() + 256; }
  constexpr std::size_t bytes() const { return maxima() + most_maxima * sizeof(float); }
};
/// The offsets in an fp8 tensor with many scales: elements by rows and by columns, the factors of rows and of
/// columns, and room for the absolute maximum of each row and column.
/// Units: bytes.
struct fp8_rows_layout {
  std::size_t rows, columns;
  constexpr std::size_t by_columns() const { return fp8_aligned(rows * columns); }
  constexpr std::size_t row_factors() const { return 2 * by_columns(); }
  constexpr std::size_t column_factors() const { return row_factors() + fp8_aligned(rows * sizeof(float)); }
  constexpr std::size_t row_maxima() const { return column_factors() + fp8_aligned(columns * sizeof(float)); }
  constexpr std::size_t column_maxima() const { return row_maxima() + fp8_aligned(rows * sizeof(float)); }
  constexpr std::size_t bytes() const { return column_maxima() + fp8_aligned(columns * sizeof(float)); }
};

constexpr std::size_t fp8_bytes(std::size_t rows, std::size_t columns, bool in_rows) {
  return in_rows ? fp8_rows_layout{rows, columns}.bytes() : fp8_layout{rows, columns}.bytes();
}

/// The scale that maps `largest`, the absolute maximum, to the largest number of F. If the maximum is 0, the
/// scale is large but finite.
template <class F>
constexpr float fp8_scale(float largest) {
  return static_cast<float>(F::largest) / std::max(largest, 1e-12f);
}
/// The scale of a row or column of e4m3_rows, rounded down to a power of two, so that scaling itself is
/// exact.
constexpr float fp8_row_scale(float largest) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(fp8_scale<e4m3>(largest)) & 0xFF800000u);
}

namespace detail {

constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

/// The exponent of the largest power of two that is not above a normal positive number.
constexpr int exponent_of(double size) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(size) >> 52) - 1023;
}

/// The numbers of F by their bits. Infinities are stored as NaN.
template <class F>
inline constexpr std::array<double, 256> fp8_numbers = [] {
  std::array<double, 256> all{};
  constexpr int one = 1 << F::mantissa;
  for (int bits = 0; bits < 128; ++bits) {
    const int field = bits / one, steps = bits % one;
    const int lowest = std::max(field, 1) - F::bias - F::mantissa;
    double size = power_of_two(lowest) * (field == 0 ? steps : one + steps);
    if (size > F::largest) size = std::numeric_limits<double>::quiet_NaN();
    all[static_cast<std::size_t>(bits)] = size;
    all[static_cast<std::size_t>(bits + 128)] = -size;
  }
  return all;
}();

}  // namespace detail

/// Rounds to the nearest number of F, ties to even. Saturates at the largest number of F.
template <class F>
F to_fp8(float number) {
  if (std::isnan(number)) return {F::nan};
  const double size = std::min(std::fabs(static_cast<double>(number)), F::largest);
  const int exponent = size > 0 ? std::max(detail::exponent_of(size), 1 - F::bias) : 1 - F::bias;
  constexpr int one = 1 << F::mantissa;
  const int steps = static_cast<int>(std::nearbyint(size * detail::power_of_two(F::mantissa - exponent)));
  const int field = exponent + F::bias - 1;  // the implicit 1, or a carry of the mantissa, adds to it
  return {static_cast<unsigned char>((std::signbit(number) ? 0x80 : 0) | (field * one + steps))};
}
template <class T, class F>
T from_fp8(F number) {
  return static_cast<T>(detail::fp8_numbers<F>[number.bits]);
}

}  // namespace rankc::runtime
