// SPDX-License-Identifier: Apache-2.0
// Plans of odd models, each on one rank and split; a split one computes what the one of its family on one
// rank does.
#pragma once
#include "../families/split_plan.hpp"

namespace odd {

std::vector<split_plan> plans();

}  // namespace odd
