// SPDX-License-Identifier: Apache-2.0
// The lanes of a pipeline rank, and which of them has what: computation, sums of gradients and losses,
// actions that run next to others, one for each rank that it sends to or receives from, and gathering of
// shards.
#pragma once
#include <rankc/codegen/lowered.hpp>

namespace rankc::codegen {

inline constexpr int compute_lane = 0, reduce_lane = 1, overlap_lane = 2;  // the last where the rank overlaps

/// In the order of the rank's layout. Neighbours in the ring of ranks have the lanes that are named after
/// them, others those with their numbers: "to_next", "from_3".
std::vector<lane> lanes_of(const plan_data&, int rank);

/// The lane that gathers the shards of weights, of a rank that has one.
int gather_lane(const std::vector<lane>&);

/// The lane of what goes around a ring, of a rank that is in one.
int ring_lane(const std::vector<lane>&);

/// The lane of an op of an item. Messages around a ring have a lane of their own, which overlaps lane 0.
int lane_of(const std::vector<lane>&, const rankc::lowering::node&, int on);

/// The lane of messages to a rank, or from it.
/// Errors: std::logic_error where there are none.
int find_lane(const std::vector<lane>&, int peer, bool sends);

/// The lane of what ranks communicate over a kind of communicator; messages, actions that overlap and
/// gathering apart.
constexpr int lane_over(runtime::over o) {
  return o == runtime::over::dp || o == runtime::over::tied || o == runtime::over::shard ||
                 o == runtime::over::efsdp
             ? reduce_lane
             : compute_lane;
}

/// Index of a communicator in `pipeline_rank::links`.
/// Errors: std::logic_error where the lane has none of that kind.
int find_link(const pipeline_rank&, int lane, runtime::over);

}  // namespace rankc::codegen
