// SPDX-License-Identifier: Apache-2.0
// What a step reports: one JSON object a step, and one aligned line on the console.
#pragma once
#include <rankc/trainer/router_metrics.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace rankc::runtime {

/// Units: tokens seen since the first step of the run, resumed ones included; mfu 0..1, absent where the
/// cluster's peak is unknown; peak_bytes of the rank that holds most.
struct step_metrics {
  std::int64_t step;
  double loss, grad_norm, lr;
  std::uint64_t tokens;
  double step_ms, tokens_per_s;
  std::optional<double> mfu;
  std::size_t peak_bytes;
  std::optional<double> eval_loss{};  // of data held out, after the step; absent where it was not evaluated
  std::optional<double>
      predicted_ms{};  // what the cost model says of a step; absent where it does not know the GPUs
  std::optional<router_metrics> routers{};  // absent where the program keeps none
  bool is_skipped = false;                  // no label counts, so the step has changed nothing
};

std::string json_line(const step_metrics&);

/// Columns are as wide as `last_step` needs.
std::string console_line(const step_metrics&, std::int64_t last_step);

/// The console shows every step of a short run, and about twenty of a long one, with the first and the last.
bool is_shown(std::int64_t step, std::int64_t first_step, std::int64_t last_step);

}  // namespace rankc::runtime
