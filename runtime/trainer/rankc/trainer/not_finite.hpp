// SPDX-License-Identifier: Apache-2.0
// Search for the first NaN or Inf of a step.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/runtime/placement.hpp>

#include <string>

namespace rankc::runtime {

/// Finds the first weight that is not finite. If all are finite, finds the gradient that is not finite and
/// that backward computes first. The text has the rank and the number of such elements. Called after a step
/// with a loss or norm that is not finite, which has changed no weight. All processes call it and get the
/// same text; empty if weights and gradients are finite.
std::string first_not_finite(engine&, const placement&);

/// Counts the picks that were dropped because their expert was full, if the plan rejects a step with dropped
/// picks; else empty. Called after a step or an evaluation with a loss that is not finite. All processes call
/// it and get the same text.
std::string find_overflow(engine&, const placement&);

/// Ends the training if the loss or the norm of a step is not finite. If the target supports it, the step is
/// run again to find the first op that causes it. All processes call it.
/// Errors: failure (70), the same on all ranks.
void refuse_if_not_finite(engine&, const placement&, const step_input&, const step_output&);

}  // namespace rankc::runtime
