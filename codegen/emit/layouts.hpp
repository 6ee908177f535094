// SPDX-License-Identifier: Apache-2.0
// The text of the tables of each pipeline coordinate, for the runtime.
#pragma once
#include <rankc/codegen/gate.hpp>
#include <rankc/codegen/lowered.hpp>

#include <map>
#include <string>
#include <vector>

namespace rankc::codegen {

/// layouts.hpp with the parameters, lanes and places, and calls.hpp with the calls of a step.
/// `logits` and the numbers of `events` have one entry for each pipeline coordinate.
std::map<std::string, std::string> emit_layouts(const lowered&, const std::vector<kept_logits>& logits,
                                                const std::vector<std::size_t>& events);

}  // namespace rankc::codegen
