// SPDX-License-Identifier: Apache-2.0
// Examples that `rankc tokens --pack` has packed into sequences of one length.
#pragma once
#include <rankc/runtime/program.hpp>
#include <rankc/trainer/sample_source.hpp>

#include <string>
#include <vector>

namespace rankc::runtime {

/// Notes for packed examples that a plan's sequences split, or that attend to each other.
std::vector<std::string> notes_on_packing(const description&, const std::vector<opened_source>&);

}  // namespace rankc::runtime
