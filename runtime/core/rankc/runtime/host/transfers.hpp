// SPDX-License-Identifier: Apache-2.0
// What the ranks of a program communicate in a step, as the fabric has carried it.
#pragma once
#include <rankc/contract/targets.hpp>
#include <rankc/runtime/engine.hpp>

namespace rankc::runtime::host {

/// A rank's part in a message or a collective: what was called, where and in which action.
/// Units: `count` as the call has it: elements; bytes of a message.
struct transfer {
  int rank, communicator;
  const char *kind, *site, *action;  // "all_gather", "weights of layers.2", "1F0"
  runtime::reduction how;            // of an all_reduce
  std::size_t count, element_bytes;
};

/// A training step of a program on the CPU; `into` receives what was carried, in the order in which it was
/// done.
/// Errors: those of the step; failure (1) where the engine is another target's.
runtime::step_output counted_step(runtime::engine&, const runtime::step_input&, std::vector<transfer>& into);

}  // namespace rankc::runtime::host
