// SPDX-License-Identifier: Apache-2.0
// The name of a plan's optimizer, and its hyperparameters.
#pragma once
#include <rankc/runtime/program.hpp>

#include <string>
#include <utility>
#include <vector>

namespace rankc::runtime {

/// `hyperparameters`: the new ones that a user's optimizer row names. The recipe holds all others.
struct plan_optimizer {
  std::string name;
  std::vector<std::pair<std::string, double>> hyperparameters{};
};

/// The optimizer that a program's `describe --json` names; an empty name if it names none.
plan_optimizer optimizer_of(const description&);

}  // namespace rankc::runtime
