// SPDX-License-Identifier: Apache-2.0
// The buffers that a rank's stages use for each microbatch: equal ones, coloured by their lifetimes.
#pragma once
#include <map>

#include "messages.hpp"
#include "passes.hpp"

namespace rankc::codegen {

/// The actions of one pipeline rank, and the messages that it sends and receives, by where they belong in its order.
struct rank_order {
  std::vector<action> actions;
  std::vector<std::vector<pipeline_message>> received_before, sent_after;  // of each action
};
rank_order order_of(const action_table&, const std::vector<pipeline_message>&, int rank);

/// Which buffers a microbatch has on a stage; -1: none.
struct microbatch_buffers {
  int slot = -1, input = -1, output = -1, dy = -1, dx = -1;
};
using buffer_table = std::map<std::pair<int, int>, microbatch_buffers>;  // of (stage, microbatch)

/// Colour the buffers of an order, and let the rank's stages hold at least as many of each.
buffer_table colour_buffers(const lowered&, pipeline_rank&, const rank_order&);

}  // namespace rankc::codegen
