// SPDX-License-Identifier: Apache-2.0
// Plans that spread experts over ranks, and shard the columns of each expert over several of them.
#pragma once
#include "../families/split_plan.hpp"

namespace columns {

std::vector<split_plan> plans();

}  // namespace columns
