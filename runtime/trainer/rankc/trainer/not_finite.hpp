// SPDX-License-Identifier: Apache-2.0
// Where the numbers of a step began to be none.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/runtime/placement.hpp>

#include <string>

namespace rankc::runtime {

/// After a step whose loss or norm is not finite, which has changed no weight: the first weight that is not
/// finite, or else of all gradients that are not the one that backward comes to first, with its rank and how
/// many of its elements. All processes call it, and get the same text; empty where what ranks keep is finite.
std::string first_not_finite(engine&, const placement&);

/// After a step or an evaluation whose loss is not finite: how many picks their experts had no room for,
/// where the plan lets no such step pass; else empty. All processes call it, and get the same text.
std::string find_overflow(engine&, const placement&);

/// What ends the training where the loss or the norm of a step is not finite: where the target can, the step
/// is run again to name the first op of which that comes. All processes call it.
/// Errors: failure (70), the same on all ranks.
void refuse_if_not_finite(engine&, const placement&, const step_input&, const step_output&);

}  // namespace rankc::runtime
