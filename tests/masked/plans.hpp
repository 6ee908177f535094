// SPDX-License-Identifier: Apache-2.0
// Plans with a loss that ignores some labels, each on one rank and split.
#pragma once
#include "../families/split_plan.hpp"

namespace masked {

std::vector<split_plan> plans();

/// The plan of the model `wide` with this recipe.
rankc::plan_data wide_plan(const rankc::training&, const rankc::parallel_dims&);

}  // namespace masked
