// SPDX-License-Identifier: Apache-2.0
// Splits a text into words by a sequence of patterns.
#pragma once
#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "split.hpp"

namespace rankc::runtime {

struct pre_tokenizer {
  static constexpr std::size_t never = ~std::size_t{0};

  std::vector<split> splits;
  std::size_t space_before =
      never;  // the split before which each piece gets a leading space, unless it begins with one

  using visitor = std::function<void(std::string_view word)>;
  /// Calls `visit` with each word of a text that is not empty.
  void for_each_word(std::string_view text, const visitor& visit) const;
};

/// GPT-2's pattern, which ByteLevel uses.
split gpt2_split();

}  // namespace rankc::runtime
