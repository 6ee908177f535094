// SPDX-License-Identifier: Apache-2.0
// Draws plans as points of time and memory.
#pragma once
#include <span>
#include <string>

#include "plan_search.hpp"

namespace rankc::tool {

/// "2877.9 ms, 132.3 GB: dp_shard 64, one_f_one_b of 2 microbatches".
std::string name_with_numbers(const judged_plan&);

/// An SVG. Shapes: winners and front are sorted by time, with at least one plan each. Units: bytes; 0: no
/// limit.
std::string chart_of(std::span<const judged_plan> winners, std::span<const judged_plan> front,
                     long long memory);

}  // namespace rankc::tool
