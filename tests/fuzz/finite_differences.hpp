// SPDX-License-Identifier: Apache-2.0
// A program's gradients beside central differences of its loss: of single elements, and along a random
// direction of each tensor, in which every element counts.
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
