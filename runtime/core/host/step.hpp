// SPDX-License-Identifier: Apache-2.0
// A step of a rank, on the engine's or an application's threads.
#pragma once
#include "local_rank.hpp"

namespace rankc::runtime::host {

/// The part of a step of one of a rank's threads: the program's text on lane 0's thread, the actions of its
/// lane on any other. An exception becomes the failure of all ranks. The first one is kept as the cause.
/// Ranks that it stops throw too, without effect.
void run_part(rank&, void (*body)(rank&));

/// Fails after a step if a kernel has written past the end of the rank's arena.
void look_past_the_end(const local_rank&);

}  // namespace rankc::runtime::host
