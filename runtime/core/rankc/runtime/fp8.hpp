// SPDX-License-Identifier: Apache-2.0
// Numbers of eight bits, and the tensors that products take of them. Their elements are there twice, by rows
// and by columns, since products in eight bits read every operand along what they sum over. One scale is of a
// whole tensor, or one of each row, and of each column of what lies by columns.
#pragma once
#include <algorithm>
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

/// The nearest number of F, of two the even one; beyond the largest that.
template <class F>
F to_fp8(float number) {
  if (std::isnan(number)) return {F::nan};
  const double size = std::min(std::fabs(static_cast<double>(number)), F::largest);
  const int exponent = size > 0 ? std::max(std::ilogb(size), 1 - F::bias) : 1 - F::bias;
  constexpr int one = 1 << F::mantissa;
  const int steps = static_cast<int>(
      std::nearbyint(std::ldexp(size, F::mantissa - exponent)));  // of 2^(exponent - mantissa)
  const int field = exponent + F::bias - 1;  // a carry of the mantissa, or the hidden one, adds to it
  return {static_cast<unsigned char>((std::signbit(number) ? 0x80 : 0) | (field * one + steps))};
}
template <class T, class F>
T from_fp8(F number) {
  constexpr int one = 1 << F::mantissa;
  const int rest = number.bits & 0x7F, field = rest / one, steps = rest % one;
  if (rest == 0x7F || rest > to_fp8<F>(static_cast<float>(F::largest)).bits)
    return std::numeric_limits<T>::quiet_NaN();
  const double size = field == 0 ? std::ldexp(steps, 1 - F::bias - F::mantissa)
                                 : std::ldexp(one + steps, field - F::bias - F::mantissa);
  return static_cast<T>(number.bits & 0x80 ? -size : size);
}

}  // namespace rankc::runtime
