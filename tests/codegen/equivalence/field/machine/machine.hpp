// SPDX-License-Identifier: Apache-2.0
// Runs the programs of all ranks over the field, or in f64. Each rank has its own memory. Each stream runs as
// far as the ops that it waits for, the messages that it receives and the members of its collectives allow.
// The final state is compared with the model's own run, element by element.
#pragma once
#include "execution.hpp"
#include "model.hpp"

namespace field {

using execution::outcome;

/// Run a program. The seed determines which ready op runs next. `from`: null if a rank begins with the rows
/// that the program says.
outcome run_program(const rankc::codegen::program&, const model_run&, unsigned seed = 0,
                    const execution::loader* from = nullptr);

}  // namespace field
