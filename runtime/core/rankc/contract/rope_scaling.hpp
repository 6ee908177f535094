// SPDX-License-Identifier: Apache-2.0
// The scaling of rotary positions in models for longer sequences than they were first trained on, and the
// share of a head that turns.
#pragma once
#include <string_view>

namespace rankc {

/// `linear` divides the frequency of every pair of elements by `factor`. `llama3` and `yarn` divide the
/// frequencies of pairs that turn less than low_freq_factor times in original_positions, keep those of pairs
/// that turn more than high_freq_factor times, and interpolate between the two: llama3 by the number of
/// turns, yarn by the number of the pair. yarn also multiplies queries and keys by 0.1 ln(factor) + 1. Its
/// papers call the two bounds beta_slow and beta_fast, and take 1 and 32. Only `share` of the elements of a
/// head turn.
/// Source: Chen et al. 2023; Grattafiori et al. 2024; Peng et al. 2023, as in transformers'
/// modeling_rope_utils.
struct rope_scaling {
  enum rule : unsigned char { none, linear, llama3, yarn } by = none;
  double factor = 1, low_freq_factor = 1, high_freq_factor = 4;
  int original_positions = 8192;
  double share = 1;
  constexpr bool operator==(const rope_scaling&) const = default;
  /// Whether all pairs turn at their own frequency.
  constexpr bool is_plain() const { return by == none && share == 1; }
  /// Whether the rule reads the number of turns.
  constexpr bool has_bounds() const { return by == llama3 || by == yarn; }
};

/// The name of a rule in Hugging Face's files.
constexpr std::string_view name_of(rope_scaling::rule r) {
  constexpr std::string_view names[]{"default", "linear", "llama3", "yarn"};
  return names[r];
}

}  // namespace rankc
