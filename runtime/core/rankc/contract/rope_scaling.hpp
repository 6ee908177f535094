// SPDX-License-Identifier: Apache-2.0
// How fast rotary positions turn, where a model is made for longer sequences than it was first trained on.
#pragma once
#include <string_view>

namespace rankc {

/// `linear` slows every pair of elements by `factor`. `llama3` slows those by it that turn less than
/// low_freq_factor times in original_positions, leaves those that turn more than high_freq_factor times, and
/// goes from one to the other between.
/// Source: Chen et al. 2023; Grattafiori et al. 2024, as in transformers' modeling_rope_utils.
struct rope_scaling {
  enum rule : unsigned char { none, linear, llama3 } by = none;
  double factor = 1, low_freq_factor = 1, high_freq_factor = 4;
  int original_positions = 8192;
  constexpr bool operator==(const rope_scaling&) const = default;
};

/// Its rule, by the name that Hugging Face's files have.
constexpr std::string_view name_of(rope_scaling::rule r) {
  if (r == rope_scaling::linear) return "linear";
  return r == rope_scaling::llama3 ? "llama3" : "default";
}

}  // namespace rankc
