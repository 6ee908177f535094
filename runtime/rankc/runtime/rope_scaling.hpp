// SPDX-License-Identifier: Apache-2.0
// How fast rotary positions turn, where a model is made for longer sequences than it was first trained on.
#pragma once
#include <cmath>
#include <string_view>

namespace rankc {

/// `linear` slows every pair of elements by `factor`. `llama3` slows those by it that turn less than low_freq_factor times in
/// original_positions, leaves those that turn more than high_freq_factor times, and goes from one to the other between.
/// Source: Chen et al. 2023; Grattafiori et al. 2024, as in transformers' modeling_rope_utils.
struct rope_scaling {
  enum rule : unsigned char { none, linear, llama3 } by = none;
  double factor = 1, low_freq_factor = 1, high_freq_factor = 4;
  int original_positions = 8192;
  constexpr bool operator==(const rope_scaling&) const = default;
};

/// Its rule, by the name that Hugging Face's files have.
constexpr std::string_view name_of(rope_scaling::rule r) {
  return r == rope_scaling::linear ? "linear" : r == rope_scaling::llama3 ? "llama3" : "default";
}

/// The angle between two positions of pair j of a head of so many elements. Units: radians.
/// Source: RoFormer (Su et al. 2021).
inline double rotary_frequency(int j, int dim, double theta, const rope_scaling& scaling) {
  const double plain = std::pow(theta, -2.0 * j / dim);
  if (scaling.by == rope_scaling::none) return plain;
  const double slow = plain / scaling.factor;
  if (scaling.by == rope_scaling::linear) return slow;
  const double turns = scaling.original_positions * plain / (2 * 3.14159265358979323846);
  if (turns < scaling.low_freq_factor) return slow;
  if (turns > scaling.high_freq_factor) return plain;
  const double share = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1 - share) * slow + share * plain;
}

}  // namespace rankc
