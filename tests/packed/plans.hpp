// SPDX-License-Identifier: Apache-2.0
// Plans with documents packed into sequences, and a loss that ignores labels, including labels across
// documents. Job "whole" has the same model without documents.
#pragma once
#include "../families/split_plan.hpp"

namespace packed {

std::vector<split_plan> plans();

/// The plan of the model on one rank with this recipe.
rankc::plan_data plan_of(const rankc::training&);

}  // namespace packed
