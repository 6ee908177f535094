// SPDX-License-Identifier: Apache-2.0
// Plans of models that read dense features, each on one rank and split.
#pragma once
#include "../families/split_plan.hpp"

namespace encoders {

std::vector<split_plan> plans();

/// A plan that is refused.
rankc::plan_data plan_with_sequence_parallelism();

}  // namespace encoders
