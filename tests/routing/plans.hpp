// SPDX-License-Identifier: Apache-2.0
// Plans whose routers choose by more than their scores: of groups of experts, with a bias, or both.
#pragma once
#include <rankc/plan/plan_data.hpp>

#include <string>
#include <vector>

namespace routing {

/// Plans of one family train the same; the first is on one rank.
struct routed_plan {
  std::string family, layout;
  rankc::plan_data plan;
};
std::vector<routed_plan> plans();

}  // namespace routing
