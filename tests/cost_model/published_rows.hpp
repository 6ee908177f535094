// SPDX-License-Identifier: Apache-2.0
// Steps that others published of their own programs (published.jsonl), each as the plan that it is nearest
// to.
#pragma once
#include <rankc/cost_model/calibrations.hpp>
#include "frameworks.hpp"
#include <rankc/stages/plan_data.hpp>

#include <string>
#include <vector>

namespace published {

/// Units: seconds; GiB of the rank that needs most, 0: not published. `fitted`: constants are by it.
struct row {
  std::string set, id;
  rankc::plan_data plan;
  double seconds = 0, gib = 0;
  bool fitted = false;
  rankc::cost_model::gpu_speed gpu{};
  const rankc::cost_model::framework* by = nullptr;
};

/// All of them, in the order of the file. Of each set that constants are fitted by, these are by the first
/// and by every fourth after it.
std::vector<row> read(const std::string& file);

}  // namespace published
