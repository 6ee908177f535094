// SPDX-License-Identifier: Apache-2.0
// What a step takes, as descriptions say it.
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
/// None of a program for the host, of one in f32, or of GPUs that rankc does not know.
std::optional<prediction> predict(const lowered&);

/// What a step's time goes to. Units: seconds.
std::vector<std::pair<std::string_view, double>> terms_of(const cost_model::step_prediction&);

/// "predicted on h200: 418 ms a step, ..."; empty where nothing is predicted.
std::string predicted_text(const lowered&);

}  // namespace rankc::codegen
