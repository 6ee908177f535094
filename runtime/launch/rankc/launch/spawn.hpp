// SPDX-License-Identifier: Apache-2.0
// The program's own launcher, for one machine: it starts itself once for each rank.
#pragma once
#include <rankc/runtime/program.hpp>

namespace rankc::runtime {

/// Start this program once for each rank, wait for all, and end them all when one fails. They end when this
/// process does. Signals that ask it to stop are passed on. If signals killed every rank that failed, it
/// reports each of them. Returns: 0, or the exit code of the rank that failed: 128 + n where signal n
/// ended it, 70 where it has ended as if all were well, or did not answer and was killed; 128 + n where this
/// process was told by signal n to end.
/// Errors: failure (75) where there is no port or no process, (2) in a process that is itself such a rank.
int spawn_ranks(const description&, char** argv);

}  // namespace rankc::runtime
