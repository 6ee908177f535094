// SPDX-License-Identifier: Apache-2.0
// Plans whose linear layers are in eight bits: a job is a model and the microbatches of a step, and its layouts give one result
// where every rank has the tensors that one rank has.
#pragma once
#include <rankc/plan/plan_data.hpp>

#include <string>
#include <vector>

namespace narrowing {

struct variant {
  std::string job, layout;  // "llama_2", "pp2"
  rankc::plan_data plan;
};

std::vector<variant> plans();

}  // namespace narrowing
