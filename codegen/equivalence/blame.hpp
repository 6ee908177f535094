// SPDX-License-Identifier: Apache-2.0
// Which op should have made the part of a sum that is missing, or lost it.
#pragma once
#include <rankc/codegen/program.hpp>

#include <string>
#include <vector>

#include "contents.hpp"

namespace rankc::codegen::algebra {

/// A sum that lacks tokens where it is read.
struct missing_tokens : refusal {
  term of;
  few<part, 2> box;
  runs tokens;
  missing_tokens(const std::string& why, term of_, few<part, 2> box_, runs tokens_)
      : refusal(why), of(of_), box(std::move(box_)), tokens(std::move(tokens_)) {}
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

/// The op that has lost some of the tokens, or that is expected to have made them; where it is not found,
/// nothing. Shapes: `rank` is where they are missing, by its index.
std::string blame(const program&, const contributions&, const missing_tokens&, int rank);

}  // namespace rankc::codegen::algebra
