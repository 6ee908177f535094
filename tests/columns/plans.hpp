// SPDX-License-Identifier: Apache-2.0
// Plans whose experts are spread over ranks, several of which have columns of the same experts.
#pragma once
#include <rankc/plan/plan_data.hpp>

#include <string>
#include <vector>

namespace columns {

/// Plans of one family train the same; the first is on one rank.
struct columns_plan {
  std::string family, layout;
  rankc::plan_data plan;
};
std::vector<columns_plan> plans();

}  // namespace columns
