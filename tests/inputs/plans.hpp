// SPDX-License-Identifier: Apache-2.0
// Plans of models that declare inputs of a step, each on one rank and split.
#pragma once
#include "../families/split_plan.hpp"

namespace inputs_of_models {

std::vector<split_plan> plans();

}  // namespace inputs_of_models
