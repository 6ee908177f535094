// SPDX-License-Identifier: Apache-2.0
// Repeated statements become loops: the layers of an action, and the microbatches of a step. The statements
// that a loop runs are the same, in the same order.
#pragma once
#include <string>
#include <vector>

#include "numbers.hpp"

namespace rankc::codegen {

/// A statement of a function.
struct statement {
  std::string text;          // without the last line's end
  bool begins_part = false;  // a blank line stands before it
};

/// A statement or a loop of generated text.
struct rolled {
  pieces text = {};
  std::string plain = {};  // the statement as it was written
  bool begins_part = false;
  // For a loop: its statements, and its variable, which runs from `first` to `last`, up or down.
  std::vector<rolled> body = {};
  std::string variable = {};
  long first = 0, last = 0;
};

/// Finds the loops of a list of statements. The longest sections that repeat come first: parts, which begin
/// with a blank line, then statements within a part.
std::vector<rolled> roll(const std::vector<statement>&, const numbered_names&);
/// The same without loops.
std::vector<rolled> unrolled(const std::vector<statement>&);

}  // namespace rankc::codegen
