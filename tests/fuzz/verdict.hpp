// SPDX-License-Identifier: Apache-2.0
// What became of drawn plans.
#pragma once
#include "batches.hpp"
#include "plan.hpp"

#include <map>
#include <string>
#include <vector>

namespace fuzz {

/// One plan: refused with a sentence, or emitted and equal to its one-rank program; else it failed, and
/// `wrong` says how.
struct verdict {
  bool emitted = false, compared = false, checked_one_rank = false, steady = true;
  std::vector<int> refused_by{};  // ids of rules, each once
  std::vector<std::string> sentences{};
  std::string stage{};  // at which it failed: "check", "lower", "compile", "run", "compare"
  std::string wrong{};
  long long elements = 0, differences = 0;
  double loss = 0, gradients = 0, weights = 0, reference = 0, finite = 0;
  bool failed() const { return !wrong.empty(); }
};

struct settings {
  compiler with;
  std::string folder;
  int at_once = 2;
  int elements = 200;  // of a one-rank program, by finite differences
};

/// Judge plans together: each in processes of its own. Those of one model share its one-rank program.
std::vector<verdict> judge(const settings&, const std::vector<plan>&);

/// A plan with as little as possible that fails at the same stage.
plan shrink(const settings&, const plan&, const verdict&);

}  // namespace fuzz
