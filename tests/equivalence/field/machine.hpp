// SPDX-License-Identifier: Apache-2.0
// Runs the programs of all ranks over the field, or in f64: each rank has memory of its own, each stream goes
// on as far as the ops that it waits for, the messages that it gets and the members of its collectives let
// it. What it leaves is held to the model's own run, element by element.
#pragma once
#include "execution.hpp"
#include "model.hpp"

namespace field {

using execution::outcome;

/// Run a program. The seed determines which ready op runs next.
outcome run_program(const rankc::codegen::program&, const model_run&, unsigned seed = 0);

}  // namespace field
