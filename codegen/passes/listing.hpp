// SPDX-License-Identifier: Apache-2.0
// What a pass works on, as lines of text for a person. What later passes decide has lines of its own, so that
// a line stays as it is until a pass changes what it says.
#pragma once
#include <rankc/codegen/lowered.hpp>

#include <string>
#include <vector>

namespace rankc::codegen {

struct section {
  std::string title;
  std::vector<std::string> lines;
};
using listing = std::vector<section>;

/// The typed ops of a layer that has not been lowered.
listing list_ops(const body&, const trace&);
/// A layer between two passes: its values, the nodes of each phase with their operands, and storage once it
/// has one.
listing list_layer(const body&, const trace&);
/// All ranks between two passes.
listing list_ranks(const lowered&);
/// The ops of each rank, in a program of these.
listing list_program(const lowered&, const program&);

}  // namespace rankc::codegen
