// SPDX-License-Identifier: Apache-2.0
// Plans of a family, each on one rank and split: those of one job train the same.
#pragma once
#include <rankc/stages/plan_data.hpp>

#include <string>
#include <vector>

struct split_plan {
  std::string job, layout;  // layout "one": one rank
  rankc::plan_data plan;
};

/// Errors: std::logic_error where there is none.
rankc::plan_data find_plan(std::vector<split_plan> among, const std::string& job, const std::string& layout);
