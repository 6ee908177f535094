// SPDX-License-Identifier: Apache-2.0
// The attributes of attention that change its scores, and the keys that a query sees.
#pragma once
#include <array>
#include <cstddef>

namespace rankc {

/// A query at position i sees the keys from i - window + 1 to i, or, if attention is not causal, all keys
/// of its sequence. The score of a query q and a key k is s = scale q k, or softcap tanh(s / softcap).
/// Units: window in tokens; 0 is no window, no softcap, and a scale of 1 / sqrt(head dim).
/// Source: Longformer (Beltagy et al. 2020), as in Mistral, for the window; Gemma 2 for the softcap.
struct attention_setting {
  int window = 0;
  double softcap = 0, scale = 0;
  bool causal = true;
  constexpr bool operator==(const attention_setting&) const = default;
  /// True if each attribute has its default.
  constexpr bool is_plain() const { return *this == attention_setting{}; }
  /// True if the scores are scale q k with the default scale, with or without a causal mask.
  constexpr bool has_plain_scores() const { return window == 0 && softcap == 0 && scale == 0; }
  /// True if attention is causal without a softcap. A window or a scale may be set.
  constexpr bool has_only_masks() const { return causal && softcap == 0; }
  static constexpr std::array<const char*, 4> names{"window", "softcap", "scale", "causal"};
  /// The attributes in the order of `names`. The hash of a call and the certificate's `given` contain them if
  /// the setting is not plain.
  constexpr std::array<double, 4> numbers() const {
    return {static_cast<double>(window), softcap, scale, causal ? 1.0 : 0.0};
  }
  /// Visits the name and the number of each attribute that does not have its default.
  constexpr void each_set(auto visit) const {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (numbers()[i] != attention_setting{}.numbers()[i]) visit(names[i], numbers()[i]);
  }
  /// The first position that a query sees, in a sequence without documents.
  constexpr int first_key(int position) const {
    return window > 0 && position >= window ? position - window + 1 : 0;
  }
  /// The last position that a query sees in a sequence of `seq` tokens.
  constexpr int last_key(int position, int seq) const { return causal ? position : seq - 1; }
};

}  // namespace rankc
