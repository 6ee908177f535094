// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <rankc/codegen/lowered.hpp>

#include <cstddef>
#include <vector>

namespace rankc::codegen {

/// The logits of one microbatch in the arena of each rank of a pipeline coordinate. A rank has the columns of
/// its shard of the vocabulary.
/// Units: `where` bytes; `stride` elements from one row to the next; `rows` 0: the program keeps no logits.
struct kept_logits {
  std::size_t where = 0;
  int rows = 0, columns = 0, stride = 0, microbatch = 0;
};

/// The logits that the evaluation program leaves in the arena, by pipeline coordinate.
std::vector<kept_logits> find_logits(const lowered&, const program& evaluation);

}  // namespace rankc::codegen
