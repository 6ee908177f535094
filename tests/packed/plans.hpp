// SPDX-License-Identifier: Apache-2.0
// Plans whose sequences are packed with documents and whose loss ignores labels, also those across documents.
// Job "whole" has the same model and no documents.
#pragma once
#include "../families/split_plan.hpp"

namespace packed {

std::vector<split_plan> plans();

}  // namespace packed
