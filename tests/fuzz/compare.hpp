// SPDX-License-Identifier: Apache-2.0
// Compares a program with the one-rank program of its model, and that one with its finite differences.
#pragma once
#include "plan.hpp"
#include "reference.hpp"

#include "program.hpp"

namespace fuzz {

/// The numbers of compared elements and the largest differences. If the model's loss is not steady, nothing
/// is compared.
struct figures {
  bool steady = true;
  long long elements = 0;     // gradients and weights, compared with the one-rank program's
  long long differences = 0;  // gradients of the one-rank program, compared with finite differences
  // Largest relative difference of each.
  double loss = 0, gradients = 0, weights = 0, reference = 0, finite = 0;
  std::vector<std::string> wrong{};  // a sentence each; empty: all are equal
};

/// Compare the one-rank program's loss with the traced ops', and its gradients with finite differences.
/// `elements`: how many to differentiate at least, if the model has more.
figures check_one_rank(const plan&, const program& one, int elements);

/// Compare loss, gradients and weights after some steps with the one-rank program's.
figures check_layout(const plan&, const program& parallel, const program& one);

}  // namespace fuzz
