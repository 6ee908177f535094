// SPDX-License-Identifier: Apache-2.0
// The loss of a model from its traces alone: each op by its definition, in double, on whole tensors. It
// shares no code with lowering or the runtime's kernels.
#pragma once
#include <rankc/stages/plan_data.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fuzz {

using tensors = std::map<std::string, std::vector<double>>;

/// The sequences of a step. Shapes: (global_batch * seq).
struct batch {
  std::vector<std::int32_t> tokens, targets;
};

/// The loss of a step, the largest magnitude of any value, attention scores included, and the dropped picks
/// of each numbered layer.
struct reference_result {
  double loss = 0, largest = 0;
  std::vector<std::int64_t> dropped;
};

/// Run a step of a plan on one rank, without router losses.
/// Errors: std::runtime_error if a token is beyond a table, or an op does not cover its tokens.
reference_result evaluate_reference(const rankc::plan_data&, const tensors& weights, const batch&);

}  // namespace fuzz
