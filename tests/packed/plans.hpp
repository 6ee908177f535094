// SPDX-License-Identifier: Apache-2.0
// Plans with documents packed into sequences, and a loss that ignores labels, including labels across
// documents. Job "whole" has the same model without documents.
#pragma once
#include "../families/split_plan.hpp"

namespace packed {

std::vector<split_plan> plans();

}  // namespace packed
