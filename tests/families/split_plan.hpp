// SPDX-License-Identifier: Apache-2.0
// Plans of a family, each on one rank and split. All layouts of a job train alike.
#pragma once
#include <rankc/stages/plan_data.hpp>

#include <string>
#include <vector>

struct split_plan {
  std::string job, layout;  // layout "one": one rank
  rankc::plan_data plan;
};

/// Errors: std::logic_error if there is no such plan.
rankc::plan_data find_plan(std::vector<split_plan> among, const std::string& job, const std::string& layout);
