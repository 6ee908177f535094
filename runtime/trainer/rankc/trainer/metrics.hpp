// SPDX-License-Identifier: Apache-2.0
// The metrics of a step: one JSON object per step, and one aligned line on the console.
#pragma once
#include <rankc/trainer/router_metrics.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace rankc::runtime {

/// The metrics of a step. `tokens` counts from the first step of the run, across resumptions. `mfu` is absent
/// if the cluster's peak is unknown. `peak_bytes` is that of the rank with the highest peak.
/// Units: mfu 0..1.
struct step_metrics {
  std::int64_t step;
  double loss, grad_norm, lr;
  std::uint64_t tokens;
  double step_ms, tokens_per_s;
  std::optional<double> mfu;
  std::size_t peak_bytes;
  std::optional<double> eval_loss{};  // on held-out data after the step; absent if the step was not evaluated
  std::optional<double> predicted_ms{};  // the cost model's prediction; absent if it does not know the GPUs
  std::optional<router_metrics> routers{};  // absent if the program keeps no router statistics
  bool is_skipped = false;                  // no label counted, so the step changed nothing
};

std::string json_line(const step_metrics&);

/// The console line of a step; `last_step` determines the width of its columns.
std::string console_line(const step_metrics&, std::int64_t last_step);

/// True for every step of a short run, and for about twenty steps of a long one, including the first and the
/// last.
bool is_shown(std::int64_t step, std::int64_t first_step, std::int64_t last_step);

}  // namespace rankc::runtime
