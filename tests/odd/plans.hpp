// SPDX-License-Identifier: Apache-2.0
// Plans of odd models, each on one rank and split. A split plan computes the same as its family's plan on one
// rank.
#pragma once
#include "../families/split_plan.hpp"

namespace odd {

std::vector<split_plan> plans();

}  // namespace odd
