// SPDX-License-Identifier: Apache-2.0
// The files that a run writes while it trains: --metrics and --tensorboard.
#pragma once
#include <rankc/trainer/command_line.hpp>
#include <rankc/trainer/console.hpp>
#include <rankc/trainer/metrics_file.hpp>
#include <rankc/trainer/run_state.hpp>
#include <rankc/trainer/tensorboard.hpp>

#include <optional>

namespace rankc::runtime {

class step_files {
 public:
  /// Opens the files that the options name, in the process that speaks. A resumed run removes the steps after
  /// its checkpoint from them.
  /// Errors: the errors of metrics_file and tensorboard_file.
  step_files(const options&, const run_state& begins, console&);

  void write(const step_metrics&);

 private:
  std::optional<metrics_file> metrics_;
  std::optional<tensorboard_file> tensorboard_;
};

}  // namespace rankc::runtime
