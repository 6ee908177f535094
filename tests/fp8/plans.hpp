// SPDX-License-Identifier: Apache-2.0
// Plans whose linear layers are in eight bits: a job is a model and the microbatches of a step, and its
// layouts give one result where every rank has the tensors that one rank has.
#pragma once
#include "../families/split_plan.hpp"

namespace narrowing {

std::vector<split_plan> plans();

}  // namespace narrowing
