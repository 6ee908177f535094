// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

/// The GPUs on which some thread would have made a context since the last call: "0 1".
std::string take_contexts();

/// The pinned memory that was last given.
void* last_pinned();

/// The name of the function whose calls fail from now on; empty: none does. A process begins with that of the
/// variable RANKC_FAKE_FAILS.
extern std::string failing_call;

/// Multiprocessors of each GPU.
extern int multiprocessors;
