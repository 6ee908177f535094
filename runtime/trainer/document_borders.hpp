// SPDX-License-Identifier: Apache-2.0
// The starts of documents in a sample: the borders of its .idx files, and the tokens after end tokens.
#pragma once
#include <rankc/runtime/program.hpp>

#include <cstdint>
#include <vector>

namespace rankc::runtime {

class document_borders {
 public:
  explicit document_borders(const description&);

  /// True if the plan has documents.
  bool exist() const { return !begins_.empty(); }

  /// A zeroed mark array for the next sample; its reader sets the marks of tokens that begin a document to 1.
  /// Null if the plan has no documents.
  /// Shapes: (seq + 1): the sample's tokens and the token after them.
  std::uint8_t* of_next_sample();

  /// Adds the borders after end tokens, and writes the position at which each token's document begins.
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
