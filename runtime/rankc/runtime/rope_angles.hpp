// SPDX-License-Identifier: Apache-2.0
// The angles of rotary tables, the same on every target.
#pragma once
#include <rankc/runtime/program.hpp>
#include <rankc/runtime/rope_scaling.hpp>

#include <cmath>
#include <cstddef>

namespace rankc::runtime {

/// Elements of a table.
constexpr std::size_t size_of(const rope_table& t) { return static_cast<std::size_t>(t.positions) * static_cast<std::size_t>(t.dim / 2 * 2); }

/// Fill the table of a rank that has such positions: position times rotary_frequency, worked out in f64.
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
