// SPDX-License-Identifier: Apache-2.0
// The start of a run: its state and its weights, from the command line, the plan, and the checkpoint that the
// run continues.
#pragma once
#include <rankc/trainer/checkpoint.hpp>
#include <rankc/trainer/command_line.hpp>
#include <rankc/trainer/console.hpp>
#include <rankc/trainer/run_state.hpp>

#include <optional>

namespace rankc::runtime {

/// `from` is the checkpoint that holds the weights; empty: `state.init` names them.
struct beginning {
  run_state state;
  std::optional<open_checkpoint> from;
};

/// Errors: failure, with the exit code of the program, if options, plan and checkpoint contradict each other.
beginning begin_run(const description&, const options&, console&);

/// Sets the weights. Sets the moments too if the run continues a checkpoint.
void set_weights(engine&, const beginning&, const options&, console&);

struct run_data;

std::uint64_t tokens_per_step(const description&);

/// Prints the lines before the first step.
void say_what_runs(const description&, const options&, const beginning&, const run_data&, console&);

}  // namespace rankc::runtime
