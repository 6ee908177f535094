// SPDX-License-Identifier: Apache-2.0
// Plans that spread experts over a separate axis, whose ranks hold the same tokens.
#pragma once
#include "../families/split_plan.hpp"

namespace independent {

std::vector<split_plan> plans();

}  // namespace independent
