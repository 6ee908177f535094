// SPDX-License-Identifier: Apache-2.0
// The buffers that a rank uses for each microbatch: a slot of the stage for what lasts from forward to backward, and for
// each boundary between stages one for the activation and one for its gradient. Coloured by their lifetimes.
#pragma once
#include <rankc/schedule/communicate.hpp>

#include <map>

#include "passes.hpp"

namespace rankc::codegen {

/// What crosses the boundary before `stage`: the activation that it reads, or the gradient of that.
struct boundary_key {
  bool gradient;
  int stage, microbatch;
  auto operator<=>(const boundary_key&) const = default;
};

/// Which buffers a rank has for each microbatch.
struct buffer_table {
  std::map<std::pair<int, int>, int> slots;  // of (stage, microbatch)
  std::map<boundary_key, int> boundaries;
  int boundary(bool gradient, int stage, int microbatch) const {
    const auto at = boundaries.find({gradient, stage, microbatch});
    return at == boundaries.end() ? -1 : at->second;
  }
};

/// Bytes of the boundary before a stage of the rank, or after its last one.
std::size_t boundary_bytes(const lowered&, const pipeline_rank&, int stage);

/// Place the buffers of a rank's actions and messages; the rank then has room for these, beside those that it had.
buffer_table place_buffers(const lowered&, pipeline_rank&, const action_table&, const communication&);

}  // namespace rankc::codegen
