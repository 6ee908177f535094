// SPDX-License-Identifier: Apache-2.0
// The messages of a schedule: between stages that follow each other and lie on different pipeline ranks.
#pragma once
#include <rankc/schedule/actions.hpp>

#include <vector>

namespace rankc::codegen {

/// The activations or gradients of one microbatch on their way. Positions are those of actions in their rank's order.
struct pipeline_message {
  bool gradients = false, to_next = false;  // to_next: to the next rank of the ring, else to the previous
  int microbatch = 0, from_stage = 0, to_stage = 0, sender = 0, receiver = 0;
  int made = 0, held = 0;    // at the sender: the action that makes it, the last that may begin while it is under way
  int posted = 0, used = 0;  // at the receiver: the action before which its receive is issued, the one that needs it
};

/// Which way a message goes round the ring of ranks. On two ranks both ways lead to the same peer: activations go on and
/// gradients back.
inline bool goes_to_next(int sender, int receiver, int ranks, bool gradients) {
  return ranks == 2 ? !gradients : receiver == (sender + 1) % ranks;
}

/// The messages of each directed edge, in the order in which it carries them: that of the sender's actions. A receive is
/// issued one action before it is needed, or earlier where one behind it is needed earlier.
/// Errors: std::runtime_error (RC330) where two stages that follow each other are on ranks that are not neighbours.
std::vector<pipeline_message> place_messages(const action_table&);

}  // namespace rankc::codegen
