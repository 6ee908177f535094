// SPDX-License-Identifier: Apache-2.0
// The data of a run: what it trains on, and what it holds out.
#pragma once
#include <rankc/trainer/beginning.hpp>
#include <rankc/trainer/command_line.hpp>
#include <rankc/trainer/console.hpp>
#include <rankc/trainer/data.hpp>

#include <optional>

namespace rankc::runtime {

struct run_data {
  dataset trained;
  std::optional<dataset> evaluated;  // of --eval-data
  bool holds_out = false;

  /// The data that training does not see, and the part of it.
  const dataset& held_out() const { return evaluated ? *evaluated : trained; }
  data_part held_part() const { return evaluated ? data_part::trained : data_part::held_out; }
};

/// Open the data of a state from its beginning, with a note for packed examples that do not fit the plan.
/// Errors: failure (1) for files that cannot serve, by name.
run_data open_data(const description&, const run_state&, console&);

/// Open the data of a run that trains, at the place where the run goes on. Sets `read` of its state, and
/// prints a note for each change since the checkpoint.
/// Errors: as above; failure (1) for files that have changed since the checkpoint; failure (2) for options
/// that contradict what the run has read.
run_data open_data_of_run(const description&, const options&, beginning&, console&);

/// The mean loss of labels over the first `batches` batches of the held-out data, at most all of it. Each
/// sample counts once. Empty if no label counts.
std::optional<double> held_out_loss(engine&, const run_data&, std::int64_t batches);

}  // namespace rankc::runtime
