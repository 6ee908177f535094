// SPDX-License-Identifier: Apache-2.0
// The scaling of rotary positions in models for longer sequences than they were first trained on.
#pragma once
#include <string_view>

namespace rankc {

/// `linear` divides the frequency of every pair of elements by `factor`. `llama3` divides the frequencies of
/// pairs that turn less than low_freq_factor times in original_positions, keeps those of pairs that turn more
/// than high_freq_factor times, and interpolates between the two.
/// Source: Chen et al. 2023; Grattafiori et al. 2024, as in transformers' modeling_rope_utils.
struct rope_scaling {
  enum rule : unsigned char { none, linear, llama3 } by = none;
  double factor = 1, low_freq_factor = 1, high_freq_factor = 4;
  int original_positions = 8192;
  constexpr bool operator==(const rope_scaling&) const = default;
};

/// The name of a rule in Hugging Face's files.
constexpr std::string_view name_of(rope_scaling::rule r) {
  if (r == rope_scaling::linear) return "linear";
  return r == rope_scaling::llama3 ? "llama3" : "default";
}

}  // namespace rankc
