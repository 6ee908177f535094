// SPDX-License-Identifier: Apache-2.0
// The angles of rotary tables, the same on every target.
#pragma once
#include <rankc/runtime/program.hpp>
#include <rankc/contract/rope_scaling.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace rankc::runtime {

inline constexpr double full_turn = 2 * 3.14159265358979323846;

/// The weight of a pair's frequency in llama3's mean of it and the slowed frequency.
inline double kept_by_llama3(double frequency, const rope_scaling& s) {
  const double turns = s.original_positions * frequency / full_turn;
  return std::clamp((turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor), 0.0, 1.0);
}

/// The same for YaRN and pair j of a head. `dim` elements of the head turn.
inline double kept_by_yarn(int j, int dim, double theta, const rope_scaling& s) {
  const auto pair_with = [&](double turns) {
    return dim * std::log(s.original_positions / (turns * full_turn)) / (2 * std::log(theta));
  };
  const double first = std::max(std::floor(pair_with(s.high_freq_factor)), 0.0);
  double last = std::min(std::ceil(pair_with(s.low_freq_factor)), dim - 1.0);
  if (last == first) last += 0.001;
  return 1 - std::clamp((j - first) / (last - first), 0.0, 1.0);
}

/// The number of elements of a head of `dim` elements that turn.
inline int turned_elements(int dim, const rope_scaling& s) {
  return static_cast<int>(std::lround(s.share * dim));
}

/// The angle between two neighbouring positions for pair j of a head of `dim` elements.
/// Units: radians.
/// Source: RoFormer (Su et al. 2021).
inline double rotary_frequency(int j, int dim, double theta, const rope_scaling& s) {
  const int turned = turned_elements(dim, s);
  if (2 * j >= turned) return 0;
  const double plain = std::pow(theta, -2.0 * j / turned);
  if (s.by == rope_scaling::none) return plain;
  const double slow = plain / s.factor;
  if (s.by == rope_scaling::linear) return slow;
  const double kept =
      s.by == rope_scaling::yarn ? kept_by_yarn(j, turned, theta, s) : kept_by_llama3(plain, s);
  return (1 - kept) * slow + kept * plain;
}

/// The factor of the elements that turn.
inline double rotary_amplitude(const rope_scaling& s) {
  return s.by == rope_scaling::yarn ? 0.1 * std::log(s.factor) + 1 : 1;
}

/// The number of elements of a table.
constexpr std::size_t size_of(const rope_table& t) {
  return static_cast<std::size_t>(t.positions) * static_cast<std::size_t>(t.dim / 2 * 2);
}

/// Fills the table of a rank that holds the positions `has`. An angle is position times rotary_frequency,
/// computed in f64. Pairs that do not turn have cosine 1.
/// Shapes: (positions, dim / 2) cosines, then as many sines.
template <class T>
void fill_angles(T* cosines, const rope_table& table, const chunks& has) {
  const int half = table.dim / 2, turned = turned_elements(table.dim, table.scaling) / 2;
  const double amplitude = rotary_amplitude(table.scaling);
  T* sines = cosines + size_of(table) / 2;
  for (int place = 0; place < table.positions; ++place)
    for (int j = 0; j < half; ++j) {
      const double angle = has.position(place) * rotary_frequency(j, table.dim, table.theta, table.scaling);
      *cosines++ = static_cast<T>(j < turned ? amplitude * std::cos(angle) : 1);
      *sines++ = static_cast<T>(amplitude * std::sin(angle));
    }
}

}  // namespace rankc::runtime
