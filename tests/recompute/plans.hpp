// SPDX-License-Identifier: Apache-2.0
// Plans that differ in what they recompute: a job is a model on a layout, and its first plan keeps
// everything.
#pragma once
#include <rankc/stages/plan_data.hpp>

#include <string>
#include <vector>

namespace recomputing {

struct variant {
  std::string job, what;  // e.g. "gpt2_zbv"; "kept" or the recomputed kinds
  rankc::plan_data plan;
};

std::vector<variant> plans();

}  // namespace recomputing
