// SPDX-License-Identifier: Apache-2.0
// The time of each kind of action in a pipeline schedule.
#pragma once
#include <rankc/schedule/actions.hpp>

#include <vector>

namespace rankc {

/// The times that actions take. A whole backward B takes input_grad + weight_grad. The two halves of an
/// OVERLAP take `overlap` times their sum. A message arrives at another rank `send` after its result is
/// ready. The all-gather of a stage's weights takes `gather`, the reduction of its gradients `reduce`, and
/// its optimizer step `step`.
/// Shapes: `stage` (stages), a factor of all actions of a stage; empty: 1. `again` (stages), the time that a
/// B or an I of the stage spends on recomputation; empty: 0. Units: any; one unit for all members.
struct costs {
  double forward = 1, input_grad = 1, weight_grad = 1, send = 0;
  double overlap = 1;
  std::vector<double> stage = {};
  double gather = 0, reduce = 0, step = 0;
  std::vector<double> again = {};
  constexpr double of(action_kind kind) const {
    switch (kind) {
      case action_kind::F:
        return forward;
      case action_kind::B:
        return input_grad + weight_grad;
      case action_kind::I:
        return input_grad;
      case action_kind::W:
        return weight_grad;
      case action_kind::unshard:
        return gather;
      case action_kind::reshard:
        return 0;
      case action_kind::reduce_grad:
        return reduce;
      case action_kind::step:
        break;
    }
    return step;
  }
  constexpr double of(const action& a) const {
    const bool repeats = !again.empty() && (a.kind == action_kind::B || a.kind == action_kind::I);
    return of(a.kind) * (stage.empty() ? 1 : stage[a.stage]) + (repeats ? again[a.stage] : 0);
  }
};

}  // namespace rankc
