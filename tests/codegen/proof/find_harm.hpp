// SPDX-License-Identifier: Apache-2.0
// Searches the interleavings of a program for a harmful one.
#pragma once
#include <rankc/codegen/program.hpp>

#include <limits>
#include <string>

namespace rankc::codegen::testing {

/// The first harm found; empty if none. Each op is late in one interleaving; in a large program only
/// `most_late` ops are.
std::string find_harm(const program&, unsigned seed, int most_late = std::numeric_limits<int>::max());

}  // namespace rankc::codegen::testing
