// SPDX-License-Identifier: Apache-2.0
// `rankc schedule --check`: can a program given as tokens run to its end, doing each thing once and in data
// order, with every message in the right receive? No knowledge of the schedule is used, only of what a
// pipeline is.
#pragma once
#include "program.hpp"

namespace rankc::tool {

/// RC302: every token is in range, once, on the rank of its stage. Fills the index.
void check_places(report& out, const text_program&, token_index&);

/// RC303: every forward; in training every backward, whole or as I and W.
void check_complete(report& out, const text_program&, const token_index&);

/// RC304: on each rank, what is computed there comes before what uses it.
void check_order(report& out, const text_program&, const token_index&);

/// RC308: what one rank makes and another uses is sent after it is made and received before it is used, and
/// nothing else is.
/// RC309: messages from one rank to another are received in the order they are sent; they carry no tags.
void check_messages(report& out, const text_program&, const token_index&);

/// RC304: nothing waits for ever. Messages are not buffered: a transfer needs both its ends, and it waits for
/// the earlier messages of its queue (`queues`) on both ranks. A computation waits for the messages it uses,
/// and a STEP for all REDUCE_GRADs, which run beside computation.
/// Names the cycle that waits for itself. What the checks above refuse must not come here.
void check_progress(report& out, const text_program&, const token_index&);

/// RC310: a stage is gathered (UNSHARD) while it computes, its gradients are reduced once, after the last
/// backward, and its STEP comes once, after all else.
/// RC303: with any STEP, the REDUCE_GRAD and STEP of every stage.
void check_sharding(report& out, const text_program&);

/// Answer a line that holds a program.
void answer_check(const json& line, json& answer, report& out);

}  // namespace rankc::tool
