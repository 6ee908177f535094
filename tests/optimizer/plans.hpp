// SPDX-License-Identifier: Apache-2.0
// Plans that differ in their optimizer, each on several layouts. The first layout of a job is one rank.
#pragma once
#include <rankc/stages/plan_data.hpp>

#include <string>
#include <vector>

namespace optimizing {

struct variant {
  std::string optimizer, layout;  // e.g. "sgd", "tp2"
  rankc::plan_data plan;
};

std::vector<variant> plans();

/// Such plans with some frozen parameters, to be lowered.
std::vector<variant> plans_with_frozen_parameters();

}  // namespace optimizing
