// SPDX-License-Identifier: Apache-2.0
// Plans with router losses: one over all layers or one per layer, over the batch or over data-parallel ranks,
// on every axis and schedule.
#pragma once
#include "../families/split_plan.hpp"

namespace balance {

std::vector<split_plan> plans();

}  // namespace balance
