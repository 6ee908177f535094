// SPDX-License-Identifier: Apache-2.0
// Plans of models with experts, each on one rank and split; a split one computes what the one of its family on one rank does.
#pragma once
#include <rankc/plan/plan_data.hpp>

#include <string>
#include <vector>

namespace experts {

struct expert_plan {
  std::string family, layout;  // layout "one": one rank
  rankc::plan_data plan;
};

std::vector<expert_plan> plans();

}  // namespace experts
