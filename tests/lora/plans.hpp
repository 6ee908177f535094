// SPDX-License-Identifier: Apache-2.0
// Plans that train LoRA adapters, or all parameters but the frozen ones. A job is a model and a recipe on
// several layouts, of which the first is one rank; a job "dense" trains all parameters of the same model on
// one rank.
#pragma once
#include "../families/split_plan.hpp"

namespace adapting {

std::vector<split_plan> plans();

/// alpha / rank in all jobs.
inline constexpr double scale = 2.5;

}  // namespace adapting
