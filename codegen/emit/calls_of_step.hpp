// SPDX-License-Identifier: Apache-2.0
// The work of the calls of a rank's step: operations, bytes, and the least time for these.
#pragma once
#include <rankc/codegen/lowered.hpp>

#include <string>
#include <vector>

namespace rankc::codegen {

/// The calls of a step that have one name.
/// Units: `bytes`: bytes moved to and from memory, or sent by the rank; `least`: seconds, 0 if the GPU is
/// unknown.
struct calls_of_step {
  std::string name;  // "linear_dw"
  runtime::call_kind kind;
  int count = 0;
  double operations = 0, bytes = 0, least = 0;
};

/// Counts the calls of the plan's step (training, or else evaluation), in the order of their first use.
/// Source: roofline (Williams et al. 2009): operations at the GPU's peak, or bytes at its memory's speed,
/// whichever takes longer. Sent bytes are counted at the speed of the links within a machine, if all ranks
/// are in one.
std::vector<calls_of_step> count_calls(const lowered&, const pipeline_rank&);

}  // namespace rankc::codegen
