// SPDX-License-Identifier: Apache-2.0
// Examples that `rankc tokens --pack` has packed into sequences of one length.
#pragma once
#include <rankc/runtime/program.hpp>
#include <rankc/trainer/sample_source.hpp>

#include <string>
#include <vector>

namespace rankc::runtime {

/// A note for each source whose packed examples a plan would cut, or let attend to each other.
std::vector<std::string> notes_on_packing(const description&, const std::vector<opened_source>&);

}  // namespace rankc::runtime
