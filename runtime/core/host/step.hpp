// SPDX-License-Identifier: Apache-2.0
// A step of a rank, whoever's threads run it.
#pragma once
#include "local_rank.hpp"

namespace rankc::runtime::host {

/// The part of a step of a rank's thread: the program's text on lane 0's, the actions of its lane on another.
/// What is thrown becomes the failure of all; the first is the cause, and the ranks that it stops throw too,
/// which changes nothing.
void run_part(rank&, void (*body)(rank&));

/// After a step: fails where a kernel has written past the end of the rank's arena.
void look_past_the_end(const local_rank&);

}  // namespace rankc::runtime::host
