// SPDX-License-Identifier: Apache-2.0
// Plans of odd models, each on one rank and split; a split one computes what the one of its family on one rank does.
#pragma once
#include <rankc/plan/plan_data.hpp>

#include <string>
#include <vector>

namespace odd {

struct odd_plan {
  std::string family, layout;  // layout "one": one rank
  rankc::plan_data plan;
};

std::vector<odd_plan> plans();

}  // namespace odd
