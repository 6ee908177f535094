// SPDX-License-Identifier: Apache-2.0
// Listings: the data of a pass as lines of text for a person. Decisions of later passes have lines of their
// own, so a line stays the same until a pass changes its content.
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
/// A layer between two passes: its values, the nodes of each phase with their operands, and its storage once
/// that is assigned.
listing list_layer(const body&, const trace&);
/// All ranks between two passes.
listing list_ranks(const lowered&);
/// The ops of each rank of a program.
listing list_program(const lowered&, const program&);

}  // namespace rankc::codegen
