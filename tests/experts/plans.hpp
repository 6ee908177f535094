// SPDX-License-Identifier: Apache-2.0
// Plans of models with experts, each on one rank and split. A split plan computes the same as its family's
// plan on one rank.
#pragma once
#include "../families/split_plan.hpp"

namespace experts {

std::vector<split_plan> plans();

}  // namespace experts
