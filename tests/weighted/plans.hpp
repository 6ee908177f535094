// SPDX-License-Identifier: Apache-2.0
// Plans with a loss in which labels have weights, each on one rank and split.
#pragma once
#include "../families/split_plan.hpp"

namespace weighted {

std::vector<split_plan> plans();

/// More layouts of the oracle's model, whose programs only the tests with the label `long` compile.
std::vector<split_plan> more_layouts();

}  // namespace weighted
