// SPDX-License-Identifier: Apache-2.0
// The angles of rotary tables, the same on every target.
#pragma once
#include <rankc/runtime/program.hpp>
#include <rankc/contract/rope_scaling.hpp>

#include <cmath>
#include <cstddef>

namespace rankc::runtime {

/// The angle between two neighbouring positions for pair j of a head of `dim` elements.
/// Units: radians.
/// Source: RoFormer (Su et al. 2021).
inline double rotary_frequency(int j, int dim, double theta, const rope_scaling& scaling) {
  const double plain = std::pow(theta, -2.0 * j / dim);
  if (scaling.by == rope_scaling::none) return plain;
  const double slow = plain / scaling.factor;
  if (scaling.by == rope_scaling::linear) return slow;
  const double turns = scaling.original_positions * plain / (2 * 3.14159265358979323846);
  if (turns < scaling.low_freq_factor) return slow;
  if (turns > scaling.high_freq_factor) return plain;
  const double share =
      (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1 - share) * slow + share * plain;
}

/// The number of elements of a table.
constexpr std::size_t size_of(const rope_table& t) {
  return static_cast<std::size_t>(t.positions) * static_cast<std::size_t>(t.dim / 2 * 2);
}

/// Fills the table of a rank that holds the positions `has`. An angle is position times rotary_frequency,
/// computed in f64.
/// Shapes: (positions, dim / 2) cosines, then as many sines.
template <class T>
void fill_angles(T* cosines, const rope_table& table, const chunks& has) {
  const int half = table.dim / 2;
  T* sines = cosines + size_of(table) / 2;
  for (int place = 0; place < table.positions; ++place)
    for (int j = 0; j < half; ++j) {
      const double angle = has.position(place) * rotary_frequency(j, table.dim, table.theta, table.scaling);
      *cosines++ = static_cast<T>(std::cos(angle));
      *sines++ = static_cast<T>(std::sin(angle));
    }
}

}  // namespace rankc::runtime
