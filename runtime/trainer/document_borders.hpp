// SPDX-License-Identifier: Apache-2.0
// Where documents begin in a sample: at the borders of its .idx files, and behind each end token.
#pragma once
#include <rankc/runtime/program.hpp>

#include <cstdint>
#include <vector>

namespace rankc::runtime {

class document_borders {
 public:
  explicit document_borders(const description&);

  /// Whether the plan has documents.
  bool exist() const { return !begins_.empty(); }

  /// The marks of another sample, all 0, in which its reader sets to 1 those of tokens that begin a document;
  /// null without documents.
  /// Shapes: (seq + 1): of the sample's tokens, and of the token after them.
  std::uint8_t* of_next_sample();

  /// Add the borders behind end tokens, and write of each token the position at which its document begins.
  /// Shapes: tokens, starts (seq).
  void write_starts(const std::int32_t* tokens, std::int32_t* starts);

  /// Sets the target of each document's last token to `label`, after write_starts.
  /// Shapes: targets (seq).
  void ignore_across(std::int32_t* targets, std::int32_t label) const;

 private:
  std::vector<std::uint8_t> begins_;
  int end_;
};

}  // namespace rankc::runtime
