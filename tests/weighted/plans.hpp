// SPDX-License-Identifier: Apache-2.0
// Plans with a loss in which labels have weights, each on one rank and split.
#pragma once
#include "../families/split_plan.hpp"

namespace weighted {

std::vector<split_plan> plans();

}  // namespace weighted
