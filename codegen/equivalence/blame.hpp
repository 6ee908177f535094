// SPDX-License-Identifier: Apache-2.0
// Finds the op that should have made the missing part of a sum, or that lost it.
#pragma once
#include <rankc/codegen/program.hpp>

#include <string>
#include <vector>

#include "contents.hpp"

namespace rankc::codegen::algebra {

/// A sum that is read before all of its elements are added.
struct incomplete_sum : refusal {
  incomplete_sum(const std::string& sum, const std::string& elements)
      : refusal("RC7405: {} lacks {}", sum, elements) {}
  const std::string& sum() const { return arguments[0]; }
  const std::string& elements() const { return arguments[1]; }
};

/// A sum that lacks tokens that some op should have added.
struct missing_tokens : incomplete_sum {
  term of;
  few<part, 2> box;
  runs tokens;
  missing_tokens(const std::string& sum, const std::string& elements, term of_, few<part, 2> box_,
                 runs tokens_)
      : incomplete_sum(sum, elements), of(of_), box(std::move(box_)), tokens(std::move(tokens_)) {}
};

/// The tokens that each op adds to sums over tokens.
class contributions {
 public:
  /// Notes the result of an op for a view, before the buffer's earlier contents are added.
  void note(int rank, int op, int value, const operand& made);

  struct contribution {
    int rank, op;
    int value;  // the value that the op writes
    term of;
    few<part, 2> box;
    runs tokens;
  };
  const std::vector<contribution>& all() const { return all_; }

 private:
  std::vector<contribution> all_;
};

/// The refusal that names the op that lost some of the tokens, or that is expected to make them. It names no
/// op if none is found.
/// Shapes: `rank` is the index of the rank whose sum lacks the tokens.
refusal blame(const program&, const contributions&, const missing_tokens&, int rank);

}  // namespace rankc::codegen::algebra
