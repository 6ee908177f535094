// SPDX-License-Identifier: Apache-2.0
// The steps of a training run, and what its options ask for besides.
#pragma once
#include <rankc/runtime/failure.hpp>
#include <rankc/trainer/command_line.hpp>
#include <rankc/trainer/console.hpp>
#include <rankc/trainer/data.hpp>
#include <rankc/trainer/metrics.hpp>
#include <rankc/trainer/orderly_stop.hpp>
#include <rankc/trainer/replicas.hpp>
#include <rankc/trainer/run_data.hpp>
#include <rankc/trainer/run_state.hpp>
#include <rankc/trainer/saver.hpp>
#include <rankc/trainer/step_files.hpp>
#include <rankc/trainer/trace_file.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace rankc::runtime {

/// The saves of a run, the comparison of its replicas, and the files that it writes.
struct run_extras {
  /// Opens what the options name.
  /// Errors: failure (2) if replicas are to be compared and no two ranks hold the same weights; the errors of
  /// the files.
  run_extras(const description&, const options&, const run_state& begins, console&);

  std::optional<saver> saves;
  std::optional<replicas> alike;
  std::optional<step_files> files;  // always set
  std::optional<trace_file> trace;
};

class step_loop {
 public:
  step_loop(engine&, const description&, const options&, const run_data&, const run_state& begins,
            run_extras&, console&);

  /// Runs the steps up to the last one, or until a signal asks the run to stop.
  /// Errors: the errors of a step and of its outputs. A save or a trace that fails does not end the loop.
  void run();

  /// Waits for the last save, and prints the result of the run.
  /// Errors: failure (65) if the last save failed; failure (128 + signal) if a signal stopped the run; the
  /// failure of the trace.
  void end();

 private:
  void take();
  void evaluate();
  void report();
  void save();
  void finish_saves();
  void say_ending();
  [[noreturn]] void refuse_stop() const;
  /// True if no step follows the last one taken.
  bool ends() const { return m_.step == last_ || signal_ != 0; }

  engine& e_;
  const description& about_;
  const options& o_;
  const run_data& data_;
  run_extras& extras_;
  console& say_;
  run_state state_;
  const std::int64_t first_, last_;
  batch_reader batches_;
  const orderly_stop stop_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  step_metrics m_{};  // the last step
  std::vector<double> step_ms_;
  std::vector<traced> times_;        // the calls of the traced step
  std::optional<failure> untraced_;  // the failure to write the trace
  int signal_ = 0;
};

}  // namespace rankc::runtime
