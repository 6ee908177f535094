// SPDX-License-Identifier: Apache-2.0
// The program's own launcher, for one machine: it starts itself once for each rank.
#pragma once
#include <rankc/runtime/program.hpp>

namespace rankc::runtime {

/// Start this program once for each rank and wait for all. If a rank fails, the others are ended; all end
/// when this process does. Signals that ask it to stop are passed on. If signals killed every rank that
/// failed, each is reported. Returns: 0, or the exit code of the rank that failed: 128 + n if signal n ended
/// it; 70 if it ended with code 0 too early, or was killed because it did not answer; 128 + n if signal n
/// ended this process.
/// Errors: failure (75) if no port or no process can be had, (2) in a process that is itself such a rank.
int spawn_ranks(const description&, char** argv);

}  // namespace rankc::runtime
