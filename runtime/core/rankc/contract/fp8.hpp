// SPDX-License-Identifier: Apache-2.0
// Numbers of eight bits, and the tensors that products take of them. Their elements are there twice, by rows
// and by columns, since products in eight bits read every operand along what they sum over. One scale is of a
// whole tensor, or one of each row, and of each column of what lies by columns.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace rankc::runtime {

/// A sign, four bits of exponent and three of mantissa: up to 448, and no infinities.
/// Source: Micikevicius et al. 2022.
struct e4m3 {
  unsigned char bits;
  static constexpr int mantissa = 3, bias = 7;
  static constexpr double largest = 448;
  static constexpr unsigned char nan = 0x7F;
};
/// A sign, five bits of exponent and two of mantissa: up to 57,344, and infinities beyond.
struct e5m2 {
  unsigned char bits;
  static constexpr int mantissa = 2, bias = 15;
  static constexpr double largest = 57344;
  static constexpr unsigned char nan = 0x7F;
};

/// An e4m3 of a tensor with a scale for each row, and for each column of what lies by columns.
struct e4m3_rows : e4m3 {};

constexpr std::size_t fp8_aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

/// Where the parts of a tensor of eight bits lie: its elements by rows, the same by columns, the factor that
/// they are multiplied by to be numbers again, and room for maxima of parts of what it is made of. Units:
/// bytes.
struct fp8_layout {
  std::size_t rows, columns;
  static constexpr std::size_t most_maxima = 1024;
  constexpr std::size_t by_columns() const { return fp8_aligned(rows * columns); }
  constexpr std::size_t factor() const { return 2 * by_columns(); }
  constexpr std::size_t maxima() const { return factor() + 256; }
  constexpr std::size_t bytes() const { return maxima() + most_maxima * sizeof(float); }
};
/// The same of a tensor with many scales: factors of rows, and of columns for the elements by columns; room
/// for the largest size of each.
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

/// What numbers are multiplied by so that the largest of them is the largest of F; of none but zeros a large
/// number.
template <class F>
constexpr float fp8_scale(float largest) {
  return static_cast<float>(F::largest) / std::max(largest, 1e-12f);
}
/// The same of a row or a column of e4m3_rows, or the next lower power of two, which rounds nothing.
constexpr float fp8_row_scale(float largest) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(fp8_scale<e4m3>(largest)) & 0xFF800000u);
}

namespace detail {

constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

/// The exponent of the power of two at or below a normal positive number.
constexpr int exponent_of(double size) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(size) >> 52) - 1023;
}

/// The numbers of F by their bits; NaN for infinities, too.
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

/// The number of F nearest to a number, and of two equally near the even one. Numbers beyond the largest of F
/// become the largest.
template <class F>
F to_fp8(float number) {
  if (std::isnan(number)) return {F::nan};
  const double size = std::min(std::fabs(static_cast<double>(number)), F::largest);
  const int exponent = size > 0 ? std::max(detail::exponent_of(size), 1 - F::bias) : 1 - F::bias;
  constexpr int one = 1 << F::mantissa;
  const int steps = static_cast<int>(std::nearbyint(size * detail::power_of_two(F::mantissa - exponent)));
  const int field = exponent + F::bias - 1;  // a carry of the mantissa, or the hidden one, adds to it
  return {static_cast<unsigned char>((std::signbit(number) ? 0x80 : 0) | (field * one + steps))};
}
template <class T, class F>
T from_fp8(F number) {
  return static_cast<T>(detail::fp8_numbers<F>[number.bits]);
}

}  // namespace rankc::runtime
