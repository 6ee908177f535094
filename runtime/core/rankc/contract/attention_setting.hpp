// SPDX-License-Identifier: Apache-2.0
// The attributes of attention that change its scores, and the keys that a query sees.
#pragma once
#include <array>

namespace rankc {

/// A query at position i sees the keys from i - window + 1 to i. The score of a query q and a key k is
/// s = scale q k, or softcap tanh(s / softcap).
/// Units: window in tokens; 0 is no window, no softcap, and a scale of 1 / sqrt(head dim).
/// Source: Longformer (Beltagy et al. 2020), as in Mistral, for the window; Gemma 2 for the softcap.
struct attention_setting {
  int window = 0;
  double softcap = 0, scale = 0;
  constexpr bool operator==(const attention_setting&) const = default;
  /// True if each attribute has its default.
  constexpr bool is_plain() const { return *this == attention_setting{}; }
  /// The numbers that the hash of a call and the certificate's `given` have of a setting that is not plain.
  constexpr std::array<double, 3> numbers() const { return {static_cast<double>(window), softcap, scale}; }
  /// The first position that a query sees, in a sequence without documents.
  constexpr int first_key(int position) const {
    return window > 0 && position >= window ? position - window + 1 : 0;
  }
};

}  // namespace rankc
