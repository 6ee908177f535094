// SPDX-License-Identifier: Apache-2.0
// Plans whose sequences are of documents, on one rank and split: a job is a model.
#pragma once
#include "../families/split_plan.hpp"

namespace documents {

std::vector<split_plan> plans();

}  // namespace documents
