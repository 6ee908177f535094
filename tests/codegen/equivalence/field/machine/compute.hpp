// SPDX-License-Identifier: Apache-2.0
// Computes one kernel of a rank.
#pragma once
#include "execution.hpp"
#include "memory.hpp"
#include "model.hpp"

#include <string>

namespace field {

/// The state of one rank.
struct rank_state {
  memory arena;
  const rankc::codegen::rank_program* program;
  int number;
};

/// Run a compute op. `difference` is set if a gradient that the optimizer reads is not the model's.
/// Errors: malformed.
void compute(rank_state&, const rankc::codegen::op&, const model_run&, std::string& difference);

/// The first element at which memory differs from a box of a parameter, of ids or of targets; empty if none
/// does.
std::string compare(const rank_state&, const rankc::codegen::access&, const rankc::codegen::holding&,
                    const model_run&, bool after, const std::vector<element>* instead = nullptr);
/// Fill memory with the content of a holding of begin.
void fill(rank_state&, const rankc::codegen::access&, const rankc::codegen::holding&, const model_run&);
/// Fill the inputs with the rows that the runtime loads, from the first byte of each on.
/// Errors: malformed where the program begins with another number of microbatches, or of rows.
void load(rank_state&, const std::vector<execution::loaded_input>&, const model_run&);

}  // namespace field
