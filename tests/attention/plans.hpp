// SPDX-License-Identifier: Apache-2.0
// Plans whose attention has windows, softcaps and scales, on one rank and split. A job is a model.
#pragma once
#include "../families/split_plan.hpp"

namespace attention_family {

std::vector<split_plan> plans();

/// A plan for one H200 whose layers have windows of this size.
rankc::plan_data plan_of_window(int window);

}  // namespace attention_family
