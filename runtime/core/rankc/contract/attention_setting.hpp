// SPDX-License-Identifier: Apache-2.0
// The attributes of attention that change its scores, and the keys that a query sees.
#pragma once
#include <array>
#include <cstddef>

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
  static constexpr std::array<const char*, 3> names{"window", "softcap", "scale"};
  /// The attributes in the order of `names`. The hash of a call and the certificate's `given` have them of a
  /// setting that is not plain.
  constexpr std::array<double, 3> numbers() const { return {static_cast<double>(window), softcap, scale}; }
  /// Visits the name and the number of each attribute that does not have its default.
  constexpr void each_set(auto visit) const {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (numbers()[i] != 0) visit(names[i], numbers()[i]);
  }
  /// The first position that a query sees, in a sequence without documents.
  constexpr int first_key(int position) const {
    return window > 0 && position >= window ? position - window + 1 : 0;
  }
};

}  // namespace rankc
