// SPDX-License-Identifier: Apache-2.0
// Plans whose routers have losses: of all layers and of each, of the batch and of data-parallel ranks, on every axis and schedule.
#pragma once
#include <rankc/plan/plan_data.hpp>

#include <string>
#include <vector>

namespace balance {

/// Plans of one family train the same; the first is on one rank.
struct balanced_plan {
  std::string family, layout;
  rankc::plan_data plan;
};
std::vector<balanced_plan> plans();

}  // namespace balance
