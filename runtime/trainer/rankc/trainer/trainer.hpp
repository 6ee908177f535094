// SPDX-License-Identifier: Apache-2.0
// The loop around the step: batches in, losses out, checkpoints and metrics as the options say.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/trainer/command_line.hpp>

#include <functional>
#include <memory>

namespace rankc::runtime {

using install_engine = std::function<std::unique_ptr<engine>()>;

/// Train for `options::steps` steps, from initial weights or from a checkpoint. What can be refused is
/// refused before `install` is called. Errors: failure, with the exit code of the program.
void train(const description&, const install_engine& install, const options&);

/// Prints the mean loss over the data of the command line, else over the data that the run holds out.
/// Errors: failure, as above.
void evaluate(const description&, const install_engine& install, const options&);

}  // namespace rankc::runtime
