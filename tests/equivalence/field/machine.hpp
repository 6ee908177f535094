// SPDX-License-Identifier: Apache-2.0
// Runs the programs of all ranks over the field: each rank has memory of its own, each stream goes on as far as the ops
// that it waits for, the messages that it gets and the members of its collectives let it. What it leaves is held to the
// model's own run, element by element.
#pragma once
#include "model.hpp"

#include <rankc/codegen/program.hpp>

#include <string>

namespace field {

/// Whether a program leaves what the model does.
struct outcome {
  bool equal = false;
  std::string difference;  // the first: op, tensor, index
  bool is_program = true;  // false: sizes do not fit, ranks do not meet
};

/// Which of the ops that can run is next is drawn of a seed.
outcome run_program(const rankc::codegen::program&, const model_run&, unsigned seed = 0);

}  // namespace field
