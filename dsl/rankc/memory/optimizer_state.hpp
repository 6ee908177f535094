// SPDX-License-Identifier: Apache-2.0
// The bytes that an optimizer keeps for each weight from step to step.
#pragma once
#include <rankc/recipe/training.hpp>
#include <rankc/rules/values/batch.hpp>

#include <cstddef>

namespace rankc::lowering {

/// The state of one weight.
/// Units: bytes of an element.
struct optimizer_state {
  std::size_t weight, moment;
  int moments;
  bool working_copy;  // layers read the weights from a copy in bf16
};

/// The state of a program whose values are `real` bytes wide and whose sums are `wide` bytes wide.
constexpr optimizer_state state_of(const training& r, std::size_t real, std::size_t wide, bool trains) {
  const bool narrow = real < wide;
  return {.weight = narrow && !r.master_weights ? real : wide,
          .moment = r.moments == bf16 ? 2 : wide,
          .moments = trains ? static_cast<int>(r.optimizer.moments().size()) : 0,
          .working_copy = narrow && r.master_weights};
}

/// True if dp ranks send gradients in bf16.
constexpr bool rounds_reductions(const training& r, const parallel_dims& d, std::size_t real,
                                 std::size_t wide, bool trains) {
  return trains && real < wide && r.reductions == bf16 && (shards_weights(d) || weight_replicas(d) > 1);
}

}  // namespace rankc::lowering
