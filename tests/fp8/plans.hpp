// SPDX-License-Identifier: Apache-2.0
// Plans with fp8 linear layers. A job is a model and the microbatches of a step; its layouts give equal
// results if every rank has the tensors of one rank.
#pragma once
#include "../families/split_plan.hpp"

namespace narrowing {

std::vector<split_plan> plans();

/// A plan on one rank with linear layers whose sizes are not multiples of 16.
rankc::plan_data plan_of_mixed_sizes();

/// A plan on one rank whose layers have routers.
rankc::plan_data plan_with_routers();

}  // namespace narrowing
