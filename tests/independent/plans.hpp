// SPDX-License-Identifier: Apache-2.0
// Plans whose experts are spread over an axis of their own, whose ranks have the same tokens.
#pragma once
#include <rankc/plan/plan_data.hpp>

#include <string>
#include <vector>

namespace independent {

/// Plans of one family train the same; the first is on one rank.
struct independent_plan {
  std::string family, layout;
  rankc::plan_data plan;
};
std::vector<independent_plan> plans();

}  // namespace independent
