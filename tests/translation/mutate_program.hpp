// SPDX-License-Identifier: Apache-2.0
// Plants faults in a proven program, after which the text no longer matches it.
#pragma once
#include <rankc/codegen/program.hpp>

#include <string>

namespace translation {

struct program_fault {
  // An index into the program's ranks; -1: the change did not apply to the drawn op.
  int rank = -1;
  std::string what{};
};

/// Plant the fault that a seed determines.
program_fault plant(rankc::codegen::program&, int seed);

}  // namespace translation
