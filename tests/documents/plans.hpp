// SPDX-License-Identifier: Apache-2.0
// Plans whose sequences are of documents, on one rank and split: a job is a model.
#pragma once
#include <rankc/plan/plan_data.hpp>

#include <string>
#include <vector>

namespace documents {

struct split_plan {
  std::string job, layout;  // layout "one": one rank
  rankc::plan_data plan;
};

std::vector<split_plan> plans();

}  // namespace documents
