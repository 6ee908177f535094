// SPDX-License-Identifier: Apache-2.0
// Plans whose experts are spread over an axis of their own, whose ranks have the same tokens.
#pragma once
#include "../families/split_plan.hpp"

namespace independent {

std::vector<split_plan> plans();

}  // namespace independent
