// SPDX-License-Identifier: Apache-2.0
// The directed pairs of pipeline ranks between which messages go.
#pragma once
#include <rankc/schedule/actions.hpp>

#include <string>
#include <vector>

namespace rankc::codegen {

/// All that goes from one rank to another is one queue, on one lane of either, whatever it carries.
struct pipeline_edge {
  int from, to;
  std::string carries;  // "activations and gradients"
};

/// The edges of a table, in the order of its stages.
std::vector<pipeline_edge> edges_of(const action_table&);

}  // namespace rankc::codegen
