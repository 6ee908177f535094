// SPDX-License-Identifier: Apache-2.0
// The lanes of a pipeline rank: computation, reductions of gradients and losses, overlapping actions, one
// lane for each rank that it sends to or receives from, ring messages, and gathers of weights.
#pragma once
#include <rankc/codegen/lowered.hpp>

namespace rankc::codegen {

// The overlap lane exists only if the rank overlaps actions.
inline constexpr int compute_lane = 0, reduce_lane = 1, overlap_lane = 2;

/// The rank's lanes, in order. A lane for messages has the name of a neighbour in the ring of pipeline ranks,
/// or the number of another rank: "to_next", "from_3".
std::vector<lane> lanes_of(const plan_data&, int rank);

/// The lane that gathers weights. The rank must have one.
int gather_lane(const std::vector<lane>&);

/// The lane of ring messages. The rank must have one.
int ring_lane(const std::vector<lane>&);

/// The lane of an op of an item. Ring messages of items on lane 0 use the ring lane, and overlap lane 0.
int lane_of(const std::vector<lane>&, const rankc::lowering::node&, int on);

/// The lane of messages to a rank, or from it.
/// Errors: std::logic_error if there is none.
int find_lane(const std::vector<lane>&, int peer, bool sends);

/// The lane on which ranks communicate over a kind of communicator. Messages, overlapping actions and gathers
/// of weights have lanes of their own.
constexpr int lane_over(runtime::over o) {
  return o == runtime::over::dp || o == runtime::over::tied || o == runtime::over::shard ||
                 o == runtime::over::efsdp
             ? reduce_lane
             : compute_lane;
}

/// Index of a communicator in `pipeline_rank::links`.
/// Errors: std::logic_error if there is no such communicator.
int find_link(const pipeline_rank&, int lane, runtime::over);

}  // namespace rankc::codegen
