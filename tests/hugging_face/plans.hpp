// SPDX-License-Identifier: Apache-2.0
// Plans of the models whose files lie in oracles/hf, each on several layouts.
#pragma once
#include <rankc/plan/plan_data.hpp>

#include <string>
#include <vector>

namespace hugging_face {

struct variant {
  std::string model, layout;  // the folder's name
  rankc::plan_data plan;
};

std::vector<variant> plans();

}  // namespace hugging_face
