// SPDX-License-Identifier: Apache-2.0
// Compares a program's gradients with central differences of its loss: for single elements, and along a
// random direction of each tensor, which covers every element.
#pragma once
#include "draws.hpp"
#include "training_run.hpp"

namespace fuzz {

struct finite_result {
  long long compared = 0;
  double worst = 0;  // relative to the tensor's largest gradient
  std::string wrong;
};

/// Differentiate every element, or some of each tensor if there are more than `elements`.
finite_result compare_differences(training_run&, const tensors& gradients, draws&, int elements);

}  // namespace fuzz
