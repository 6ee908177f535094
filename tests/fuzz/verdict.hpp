// SPDX-License-Identifier: Apache-2.0
// The outcomes of drawn plans.
#pragma once
#include "batches.hpp"
#include "plan.hpp"

#include <map>
#include <string>
#include <vector>

namespace fuzz {

/// The verdict on a plan: refused with sentences; or emitted and equal to its one-rank program; or failed,
/// with the reason in `wrong`.
struct verdict {
  bool emitted = false, compared = false, checked_one_rank = false, steady = true;
  std::vector<int> refused_by{};  // ids of rules, each once
  std::vector<std::string> sentences{};
  std::string stage{};  // where it failed: "check", "lower", "compile", "run", "compare"
  std::string wrong{};
  long long elements = 0, differences = 0;
  double loss = 0, gradients = 0, weights = 0, reference = 0, finite = 0;
  bool failed() const { return !wrong.empty(); }
};

struct settings {
  compiler with;
  std::string folder;
  int at_once = 2;
  int elements = 200;  // elements of a one-rank program that finite differences check
};

/// Judge plans together, each in separate processes. Plans of one model share its one-rank program.
std::vector<verdict> judge(const settings&, const std::vector<plan>&);

/// The smallest plan found that fails at the same stage.
plan shrink(const settings&, const plan&, const verdict&);

}  // namespace fuzz
