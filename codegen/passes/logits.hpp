// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <rankc/codegen/lowered.hpp>

#include <cstddef>
#include <vector>

namespace rankc::codegen {

/// The logits of one microbatch, in the arena of each rank of a pipeline coordinate: of its part of the
/// vocabulary.
/// Units: bytes; elements from one row to the next; rows 0: nothing is left.
struct kept_logits {
  std::size_t where = 0;
  int rows = 0, columns = 0, stride = 0, microbatch = 0;
};

/// What the forward program leaves, by pipeline coordinate.
std::vector<kept_logits> find_logits(const lowered&);

}  // namespace rankc::codegen
