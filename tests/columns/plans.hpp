// SPDX-License-Identifier: Apache-2.0
// Plans whose experts are spread over ranks, several of which have columns of the same experts.
#pragma once
#include "../families/split_plan.hpp"

namespace columns {

std::vector<split_plan> plans();

}  // namespace columns
