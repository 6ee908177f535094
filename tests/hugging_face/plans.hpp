// SPDX-License-Identifier: Apache-2.0
// Plans of the models in oracles/hf, each on several layouts. A job is a folder there.
#pragma once
#include "../families/split_plan.hpp"

namespace hugging_face {

std::vector<split_plan> plans();

}  // namespace hugging_face
