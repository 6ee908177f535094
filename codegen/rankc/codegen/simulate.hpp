// SPDX-License-Identifier: Apache-2.0
// The time line of a schedule: when each action runs if actions take given times and a message takes `send`.
#pragma once
#include <rankc/schedule/actions.hpp>

#include <vector>

namespace rankc::codegen {

/// Units: any, the same for all. A whole backward B takes input_grad + weight_grad.
struct action_costs {
  double forward = 1, input_grad = 1, weight_grad = 1, send = 0;
};

struct timed_action {
  action what;
  double begin, end;
};

/// Shapes: one entry per pipeline rank. Units: peak_activations in microbatches of one stage.
struct timeline {
  std::vector<std::vector<timed_action>> ranks;
  double makespan = 0;
  double bubble = 0;  // share of all ranks' time without work, 0..1
  std::vector<double> bubble_per_rank;
  std::vector<int> peak_activations;
};

/// The earliest time of each action, given the order on every rank and the data dependencies.
/// The table must pass check_actions.
timeline simulate(const action_table&, const action_costs& = {});

}  // namespace rankc::codegen
