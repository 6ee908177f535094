// SPDX-License-Identifier: Apache-2.0
// Packs examples into sequences of one length, so that no example lies in two of them.
#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include "example.hpp"

namespace rankc::tool {

/// The sizes of a packing. `cut` examples have lost `lost` tokens, because they are longer than a sequence.
struct packing_counts {
  std::size_t sequences = 0, examples = 0, tokens = 0;
  std::size_t cut = 0, lost = 0;
};

class packer {
 public:
  /// `filler` is the token behind the last example of a sequence, up to its end. `write` gets each sequence.
  packer(std::size_t length, int filler, std::function<void(const example&)> write)
      : length_(length), filler_(filler), write_(std::move(write)) {}

  /// Add an example, of which at most `length` tokens are kept.
  void add(example);
  /// Pack the examples that are left.
  void finish();

  const packing_counts& counts() const { return counts_; }

 private:
  void pack();

  std::size_t length_;
  int filler_;
  std::function<void(const example&)> write_;
  std::vector<example> window_;  // not yet packed
  std::size_t held_ = 0;         // tokens of these
  packing_counts counts_;
};

/// Distribute examples over sequences by best fit, the longest first. Returns: for each sequence the numbers
/// of its examples. Examples of a sequence, and sequences by their first example, keep the given order.
/// Source: best-fit decreasing, as in "Fewer Truncations Improve Language Modeling" (Ding et al. 2024).
std::vector<std::vector<std::size_t>> best_fit(const std::vector<std::size_t>& lengths, std::size_t length);

}  // namespace rankc::tool
