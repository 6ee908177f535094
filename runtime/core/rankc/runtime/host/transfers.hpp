// SPDX-License-Identifier: Apache-2.0
// The communication of a program's ranks in a step, as the fabric has carried it out.
#pragma once
#include <rankc/contract/targets.hpp>
#include <rankc/runtime/engine.hpp>

namespace rankc::runtime::host {

/// A rank's part in a message or a collective: the call, its site and its action.
/// Units: `count` as in the call: elements of a collective, bytes of a message.
struct transfer {
  int rank, communicator;
  const char *kind, *site, *action;  // "all_gather", "weights of layers.2", "1F0"
  runtime::reduction how;            // for an all_reduce
  std::size_t count, element_bytes;
};

/// Runs a training step of a program on the CPU. `into` receives the transfers in the order in which they
/// were carried out.
/// Errors: those of the step; failure (1) if the engine belongs to another target.
runtime::step_output counted_step(runtime::engine&, const runtime::step_input&, std::vector<transfer>& into);

}  // namespace rankc::runtime::host
