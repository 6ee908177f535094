// SPDX-License-Identifier: Apache-2.0
// Plans whose routers have losses: of all layers and of each, of the batch and of data-parallel ranks, on
// every axis and schedule.
#pragma once
#include "../families/split_plan.hpp"

namespace balance {

std::vector<split_plan> plans();

}  // namespace balance
