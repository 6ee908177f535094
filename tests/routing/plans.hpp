// SPDX-License-Identifier: Apache-2.0
// Plans whose routers choose by more than their scores: of groups of experts, with a bias, or both.
#pragma once
#include "../families/split_plan.hpp"

namespace routing {

std::vector<split_plan> plans();

}  // namespace routing
