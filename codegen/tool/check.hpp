// SPDX-License-Identifier: Apache-2.0
// `rankc schedule --check`: checks that a program given as tokens runs to its end, does each thing once and
// in data order, and receives every message in the right place. It uses no knowledge of the schedule, only of
// pipelines.
#pragma once
#include "program.hpp"

namespace rankc::tool {

/// RC302: checks that every token is in range, occurs once, and is on the rank of its stage. Fills the index.
void check_places(report& out, const text_program&, token_index&);

/// RC303: checks that every forward is there; in training also every backward, whole or as I and W.
void check_complete(report& out, const text_program&, const token_index&);

/// RC304: checks that a result is computed before another action of the same rank uses it.
void check_order(report& out, const text_program&, const token_index&);

/// RC308: checks that each result that another rank uses is sent after it is computed and received before it
/// is used, and that nothing else is sent.
/// RC309: checks that messages from one rank to another are received in the order in which they are sent.
/// Messages have no tags.
void check_messages(report& out, const text_program&, const token_index&);

/// RC304: checks that nothing waits for ever. Messages are not buffered: a transfer needs both its ends, and
/// waits for the earlier messages of its queue (`queues`) on both ranks. A computation waits for the messages
/// that it uses. A STEP waits for all REDUCE_GRADs, which overlap computation.
/// The diagnostic names the cycle. The program must have passed the checks above.
void check_progress(report& out, const text_program&, const token_index&);

/// RC310: checks that a stage is gathered (UNSHARD) while it computes, that its gradients are reduced once,
/// after the last backward, and that its STEP comes once, after all else.
/// RC303: checks that a program with any STEP has the REDUCE_GRAD and STEP of every stage.
void check_sharding(report& out, const text_program&);

/// Answers a line that contains a program.
void answer_check(const json& line, json& answer, report& out);

}  // namespace rankc::tool
