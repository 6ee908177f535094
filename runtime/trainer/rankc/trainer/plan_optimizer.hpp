// SPDX-License-Identifier: Apache-2.0
// The optimizer of a plan by its name.
#pragma once
#include <rankc/runtime/program.hpp>

#include <string>
#include <utility>
#include <vector>

namespace rankc::runtime {

/// `hyperparameters`: those of a user's row that names new ones. The recipe has those of other rows.
struct plan_optimizer {
  std::string name;
  std::vector<std::pair<std::string, double>> hyperparameters{};
};

/// The optimizer that a program's `describe --json` names. The name is empty if a program names none.
plan_optimizer optimizer_of(const description&);

}  // namespace rankc::runtime
