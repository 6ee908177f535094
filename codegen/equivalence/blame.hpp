// SPDX-License-Identifier: Apache-2.0
// Which op should have made the part of a sum that is missing, or lost it.
#pragma once
#include <rankc/codegen/program.hpp>

#include <string>
#include <vector>

#include "contents.hpp"

namespace rankc::codegen::algebra {

/// A sum that is read before all of its elements are in it.
struct incomplete_sum : refusal {
  incomplete_sum(const std::string& sum, const std::string& elements)
      : refusal("RC7405: {} lacks {}", sum, elements) {}
  const std::string& sum() const { return arguments[0]; }
  const std::string& elements() const { return arguments[1]; }
};

/// One that lacks tokens, which some op should have put into it.
struct missing_tokens : incomplete_sum {
  term of;
  few<part, 2> box;
  runs tokens;
  missing_tokens(const std::string& sum, const std::string& elements, term of_, few<part, 2> box_,
                 runs tokens_)
      : incomplete_sum(sum, elements), of(of_), box(std::move(box_)), tokens(std::move(tokens_)) {}
};

/// The tokens that ops put into sums over tokens, as they go.
class contributions {
 public:
  /// What an op makes for a view, before it is added to what is there.
  void note(int rank, int op, int value, const operand& made);

  struct contribution {
    int rank, op;
    int value;  // that it writes
    term of;
    few<part, 2> box;
    runs tokens;
  };
  const std::vector<contribution>& all() const { return all_; }

 private:
  std::vector<contribution> all_;
};

/// The refusal that names the op that has lost some of the tokens, or that is expected to have made them;
/// without one where it is not found. Shapes: `rank` is where they are missing, by its index.
refusal blame(const program&, const contributions&, const missing_tokens&, int rank);

}  // namespace rankc::codegen::algebra
