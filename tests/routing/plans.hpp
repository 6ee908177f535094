// SPDX-License-Identifier: Apache-2.0
// Plans whose routers choose within groups of experts, with a bias, or both.
#pragma once
#include "../families/split_plan.hpp"

namespace routing {

std::vector<split_plan> plans();

}  // namespace routing
