// SPDX-License-Identifier: Apache-2.0
// Packs examples into sequences of one length. No example is in two sequences.
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

  /// Adds an example. At most `length` of its tokens are kept.
  void add(example);
  /// Packs the remaining examples.
  void finish();

  const packing_counts& counts() const { return counts_; }

 private:
  void pack();

  std::size_t length_;
  int filler_;
  std::function<void(const example&)> write_;
  std::vector<example> window_;  // not yet packed
  std::size_t held_ = 0;         // their tokens
  packing_counts counts_;
};

/// Distributes examples over sequences by best fit, the longest first. Returns: for each sequence the indices
/// of its examples. Examples within a sequence keep their order, and so do sequences by their first example.
/// Source: best-fit decreasing, as in "Fewer Truncations Improve Language Modeling" (Ding et al. 2024).
std::vector<std::vector<std::size_t>> best_fit(const std::vector<std::size_t>& lengths, std::size_t length);

}  // namespace rankc::tool
