// SPDX-License-Identifier: Apache-2.0
// The training loop: it reads batches, runs steps, and writes metrics and checkpoints according to the
// options.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/trainer/command_line.hpp>

#include <functional>
#include <memory>

namespace rankc::runtime {

using install_engine = std::function<std::unique_ptr<engine>()>;

/// Trains for `options::steps` steps, from initial weights or from a checkpoint. Input errors are reported
/// before `install` is called, if they can be.
/// Errors: failure, with the exit code of the program.
void train(const description&, const install_engine& install, const options&);

/// Prints the mean loss over the data of the command line, else over the data that the run holds out.
/// Errors: failure, with the exit code of the program.
void evaluate(const description&, const install_engine& install, const options&);

}  // namespace rankc::runtime
