// SPDX-License-Identifier: Apache-2.0
// Lowered programs with one fault. Most are as consistent as they were, so that only what they compute is
// wrong: an operand for another, a scale, a sum without a part. Each has the kind of its fault.
#pragma once
#include <rankc/codegen/program.hpp>
#include <rankc/codegen/specification.hpp>

#include <random>
#include <string>
#include <vector>

namespace field {

struct fault {
  std::string kind, text;  // an empty kind: the draw found nothing to change
};

/// The number of kinds of faults.
int count_faults();

/// Make one fault, of a kind by its number.
fault make_fault(rankc::codegen::program&, int kind, std::mt19937&);

/// All members leave a sum out: what read it reads each rank's part.
void leave_out_sum(rankc::codegen::program&, const rankc::codegen::op& of);

/// Make one fault in the model instead.
fault make_fault(rankc::codegen::specification&, std::mt19937&);

}  // namespace field
