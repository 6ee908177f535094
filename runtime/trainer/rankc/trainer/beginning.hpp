// SPDX-License-Identifier: Apache-2.0
// Where a run begins and what it runs with: by the command line, the plan, and the checkpoint that the run
// goes on from.
#pragma once
#include <rankc/trainer/checkpoint.hpp>
#include <rankc/trainer/command_line.hpp>
#include <rankc/trainer/console.hpp>
#include <rankc/trainer/run_state.hpp>

#include <optional>

namespace rankc::runtime {

/// `from` is the checkpoint that holds the weights; none: `state.init` names them.
struct beginning {
  run_state state;
  std::optional<open_checkpoint> from;
};

/// Errors: failure, with the exit code of the program, where options, plan and checkpoint contradict each
/// other.
beginning begin_run(const description&, const options&, console&);

/// Set weights, and where a checkpoint is loaded moments.
void set_weights(engine&, const beginning&, const options&, console&);

struct run_data;

std::uint64_t tokens_per_step(const description&);

/// Print the lines before the first step.
void say_what_runs(const description&, const options&, const beginning&, const run_data&, console&);

}  // namespace rankc::runtime
