// SPDX-License-Identifier: Apache-2.0
// Where a run begins and what it runs with, of the command line, the plan and the checkpoint that it goes on
// from.
#pragma once
#include <rankc/trainer/checkpoint.hpp>
#include <rankc/trainer/command_line.hpp>
#include <rankc/trainer/console.hpp>
#include <rankc/trainer/data.hpp>
#include <rankc/trainer/run_state.hpp>

#include <optional>

namespace rankc::runtime {

/// `from` is the checkpoint that holds the weights; none: `state.init` says.
struct beginning {
  run_state state;
  std::optional<open_checkpoint> from;
};

/// Errors: failure, with the exit code of the program, where options, plan and checkpoint contradict each
/// other.
beginning begin_run(const description&, const options&, console&);

/// Set weights, and where a checkpoint is loaded moments.
void set_weights(engine&, const beginning&, const options&, console&);

/// What is trained on, and what is held out of it.
struct run_data {
  dataset trained;
  std::optional<dataset> evaluated;  // of --eval-data
  bool holds_out = false;

  /// The samples that training does not see, and the part of them that is these.
  const dataset& held_out() const { return evaluated ? *evaluated : trained; }
  data_part held_part() const { return evaluated ? data_part::trained : data_part::held_out; }
};

/// Errors: failure (1) for files that cannot serve, by name.
run_data open_data(const description&, const run_state&);

std::uint64_t tokens_per_step(const description&);

/// The lines before the first step.
void say_what_runs(const description&, const options&, const beginning&, const run_data&, console&);

/// The mean loss over up to `batches` batches of what is held out, no sample of it twice where it has enough
/// for one.
double held_out_loss(engine&, const run_data&, std::int64_t batches);

}  // namespace rankc::runtime
