// SPDX-License-Identifier: Apache-2.0
// Plans of models with experts, each on one rank and split; a split one computes what the one of its family
// on one rank does.
#pragma once
#include "../families/split_plan.hpp"

namespace experts {

std::vector<split_plan> plans();

}  // namespace experts
