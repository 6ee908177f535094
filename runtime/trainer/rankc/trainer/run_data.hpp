// SPDX-License-Identifier: Apache-2.0
// The data that a run trains on, and the data that it holds out.
#pragma once
#include <rankc/trainer/beginning.hpp>
#include <rankc/trainer/command_line.hpp>
#include <rankc/trainer/console.hpp>
#include <rankc/trainer/data.hpp>

#include <optional>

namespace rankc::runtime {

struct run_data {
  dataset trained;
  std::optional<dataset> evaluated;  // the data of --eval-data
  bool holds_out = false;

  /// The dataset with the held-out data, and the part of it that is held out.
  const dataset& held_out() const { return evaluated ? *evaluated : trained; }
  data_part held_part() const { return evaluated ? data_part::trained : data_part::held_out; }
};

/// Opens the data of a state from its beginning. Prints a note for packed examples that do not fit the plan.
/// Errors: failure (1) that names files that cannot serve.
run_data open_data(const description&, const run_state&, console&);

/// Opens the data of a training run at the place where the run continues. Sets `read` of its state, and
/// prints a note for each change since the checkpoint.
/// Errors: as above; failure (1) for files that have changed since the checkpoint; failure (2) for options
/// that contradict the data that the run has read.
run_data open_data_of_run(const description&, const options&, beginning&, console&);

/// The mean loss of labels over the first `batches` batches of the held-out data, at most all of it. Each
/// sample counts once. Empty if no label counts.
std::optional<double> held_out_loss(engine&, const placement&, const run_data&, std::int64_t batches);

}  // namespace rankc::runtime
