// SPDX-License-Identifier: Apache-2.0
// Plans with documents in their sequences, on one rank and split. A job is a model.
#pragma once
#include "../families/split_plan.hpp"

namespace documents {

std::vector<split_plan> plans();

}  // namespace documents
