// SPDX-License-Identifier: Apache-2.0
// The map of a rank's memory: its values by address, and when they are live.
#pragma once
#include <rankc/codegen/lowered.hpp>

#include <string>

namespace rankc::codegen {

/// A comment with a line for each region and each pool of equal values.
std::string memory_map(const lowered&, const pipeline_rank&);

}  // namespace rankc::codegen
