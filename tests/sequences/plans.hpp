// SPDX-License-Identifier: Apache-2.0
// Plans whose ranks shard sequences and exchange heads, alone and with every other technique. A job is a
// model, on one rank and split.
#pragma once
#include "../families/split_plan.hpp"

namespace sequences {

std::vector<split_plan> plans();

}  // namespace sequences
