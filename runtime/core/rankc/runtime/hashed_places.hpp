// SPDX-License-Identifier: Apache-2.0
// The places of an arena that a step's text does not name: the trainer finds them in the tables of the
// program. They are hashed behind the calls of a step.
#pragma once
#include <rankc/runtime/proven.hpp>

#include <cstddef>
#include <cstdint>

namespace rankc::runtime {

/// First bytes of the tensors of all microbatches, and of the results.
struct hashed_places {
  static constexpr std::size_t none =
      ~std::size_t{0};  // the rank has no such tensor, or the step does not use it
  std::size_t arena_bytes = 0, tokens = none, targets = none, starts = none;
  std::size_t loss = none;  // of a rank that reads targets
  std::size_t norm = none;  // of a training step
};

inline std::uint64_t hash_of(std::uint64_t before, const hashed_places& p) {
  hasher f(before);
  for (const std::size_t place : {p.arena_bytes, p.tokens, p.targets, p.starts, p.loss, p.norm})
    f.add(std::uint64_t{place});
  return f.value();
}

}  // namespace rankc::runtime
