// SPDX-License-Identifier: Apache-2.0
// Faults planted into a proven program, each of which makes its text another program's.
#pragma once
#include <rankc/codegen/program.hpp>

#include <string>

namespace translation {

struct program_fault {
  int rank = -1;  // an index into the program's ranks; -1: the place that was drawn has nothing of the kind
  std::string what{};
};

/// Plant the fault that a seed decides.
program_fault plant(rankc::codegen::program&, int seed);

}  // namespace translation
