// SPDX-License-Identifier: Apache-2.0
// The predicted time of a step, for descriptions.
#pragma once
#include <rankc/codegen/lowered.hpp>
#include <rankc/cost_model/step_time.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rankc::codegen {

struct prediction {
  std::string_view gpu;
  cost_model::step_prediction step;
  std::vector<cost_model::stage_times> stages;
};
/// Empty for the host, for f32, and for GPUs that rankc does not know.
std::optional<prediction> predict(const lowered&);

/// The parts of a step's time. Units: seconds.
std::vector<std::pair<std::string_view, double>> terms_of(const cost_model::step_prediction&);

/// "predicted on h200: 418 ms a step, ..."; empty without a prediction.
std::string predicted_text(const lowered&);

}  // namespace rankc::codegen
