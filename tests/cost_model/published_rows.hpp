// SPDX-License-Identifier: Apache-2.0
// Published steps of other frameworks (published.jsonl), each as the nearest plan.
#pragma once
#include <rankc/cost_model/calibrations.hpp>
#include "frameworks.hpp"
#include <rankc/stages/plan_data.hpp>

#include <string>
#include <vector>

namespace published {

/// A published step. `gib`: the rank that needs most, 0 if not published. `fitted`: constants are fitted to
/// it.
/// Units: seconds and GiB.
struct row {
  std::string set, id;
  rankc::plan_data plan;
  double seconds = 0, gib = 0;
  bool fitted = false;
  rankc::cost_model::gpu_speed gpu{};
  const rankc::cost_model::framework* by = nullptr;
};

/// All rows in the order of the file. Constants are fitted to the first row of a set and to every fourth
/// after it, if the set is used for fitting.
std::vector<row> read(const std::string& file);

}  // namespace published
