// SPDX-License-Identifier: Apache-2.0
// The directed pairs of pipeline ranks that exchange messages.
#pragma once
#include <rankc/schedule/actions.hpp>

#include <string>
#include <vector>

namespace rankc::codegen {

/// All messages from one rank to another are one queue, on one lane of each.
struct pipeline_edge {
  int from, to;
  std::string carries;  // "activations and gradients"
};

/// The edges of a table, in the order of its stages.
std::vector<pipeline_edge> edges_of(const action_table&);

}  // namespace rankc::codegen
