// SPDX-License-Identifier: Apache-2.0
// Plans of models with experts, each on one rank and split. A split plan computes the same as its family's
// plan on one rank.
#pragma once
#include "../families/split_plan.hpp"

namespace experts {

std::vector<split_plan> plans();

/// A plan on eight ranks whose 16 experts take at most `capacity` times their share of the picks of 32
/// positions, or all picks if it is 0.
rankc::plan_data plan_of_capacity(double capacity);

}  // namespace experts
