// SPDX-License-Identifier: Apache-2.0
// What the calls of a rank's step do: operations, bytes, and the least that these take.
#pragma once
#include <rankc/codegen/lowered.hpp>

#include <string>
#include <vector>

namespace rankc::codegen {

/// The calls of a step by one name.
/// Units: `bytes` that pass through memory, or that the rank sends; `least` in seconds, 0 where the GPU is
/// not known.
struct calls_of_step {
  std::string name;  // "linear_dw"
  runtime::call_kind kind;
  int count = 0;
  double operations = 0, bytes = 0, least = 0;
};

/// Those of the step that the plan is for, in the order of their first use.
/// Source: roofline (Williams et al. 2009): operations by the GPU's peak or bytes by its memory's speed,
/// whichever takes longer; of what is sent, bytes by the speed of links within a machine, where all ranks are
/// in one.
std::vector<calls_of_step> count_calls(const lowered&, const pipeline_rank&);

}  // namespace rankc::codegen
