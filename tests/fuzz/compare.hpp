// SPDX-License-Identifier: Apache-2.0
// Runs a program beside the one-rank program of its model, and that beside its own finite differences.
#pragma once
#include "plan.hpp"
#include "reference.hpp"

#include "program.hpp"

namespace fuzz {

/// What was compared, and how far it was apart. Of a model whose loss is not steady nothing is.
struct figures {
  bool steady = true;
  long long elements = 0;     // gradients and weights, with the one-rank program's
  long long differences = 0;  // gradients of the one-rank program, with finite differences
  double loss = 0, gradients = 0, weights = 0, reference = 0, finite = 0;  // largest, relative
  std::vector<std::string> wrong{};  // a sentence each; empty: all is equal
};

/// The one-rank program's loss is that of the traces, and its gradients are its loss's.
/// `elements`: how many to differentiate at least, where the model has more.
figures check_one_rank(const plan&, const program& one, int elements);

/// Loss, gradients and weights after some steps are the one-rank program's.
figures check_layout(const plan&, const program& parallel, const program& one);

}  // namespace fuzz
