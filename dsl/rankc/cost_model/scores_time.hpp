// SPDX-License-Identifier: Apache-2.0
// The time of attention that stores all scores in memory: GEMMs of each head, and memory-bound kernels
// between them.
#pragma once
#include <rankc/cost_model/product_time.hpp>

namespace rankc::cost_model {

/// The heads of all sequences, the tokens of a sequence, and the elements of a head.
struct attention_sizes {
  long long heads, seq, dim;
};

/// The time of such attention. The kernel of the softmax also scales and masks: it reads the half of the
/// scores that is not masked, and writes all. Dropout stores a byte of each score. Forward copies the result
/// into the order of tokens, and backward copies the gradients of queries, keys and values into one tensor.
/// Units: seconds.
/// Source: Megatron-LM; Korthikanti et al. 2022, figure 3.
constexpr double scores_time(const gpu_speed& g, const attention_sizes& a, bool backward, bool dropout) {
  constexpr double element = 2;
  const auto rows = static_cast<double>(a.heads) * static_cast<double>(a.seq);
  const double scores = rows * static_cast<double>(a.seq), values = rows * static_cast<double>(a.dim);
  const double operands = element * (scores + 2 * values);
  const double of_scores = product_time(g, a.heads * a.seq, a.seq, a.dim, operands, 1);
  const double of_values = product_time(g, a.heads * a.seq, a.dim, a.seq, operands, 1);
  const double softmax = element * scores * (backward ? 2 : 1.5),
               dropped = dropout ? (2 * element + 1) * scores : 0;
  const double copied = 2 * element * values * (backward ? 3 : 1);
  return (backward ? of_scores + 3 * of_values : of_scores + of_values) + g.passes.time(softmax) +
         g.passes.time(dropped) + g.passes.time(copied);
}

}  // namespace rankc::cost_model
