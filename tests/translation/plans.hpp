// SPDX-License-Identifier: Apache-2.0
// The example plans, in the form that the generator takes.
#pragma once
#include <rankc/stages/plan_data.hpp>

#include <vector>

namespace translation {

std::vector<rankc::plan_data> example_plans();
/// The example with sharded weights.
rankc::plan_data sharded_plan();

}  // namespace translation
