// SPDX-License-Identifier: Apache-2.0
// Plans whose ranks share out sequences and exchange heads, alone and with every other technique: a job is a model, on one
// rank and split.
#pragma once
#include <rankc/plan/plan_data.hpp>

#include <string>
#include <vector>

namespace sequences {

struct split_plan {
  std::string job, layout;  // "llama", "zbv_sp"; layout "one": one rank
  rankc::plan_data plan;
};

std::vector<split_plan> plans();

}  // namespace sequences
