// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

/// The GPUs on which a thread would have created a context since the last call: "0 1".
std::string take_contexts();

/// The pinned memory that was allocated last.
void* last_pinned();

/// The function whose calls fail; empty: none. A process starts with the value of RANKC_FAKE_FAILS.
extern std::string failing_call;

/// Multiprocessors of each GPU.
extern int multiprocessors;
