// SPDX-License-Identifier: Apache-2.0
// The directed pairs of pipeline ranks between which messages go, and the streams on which either side has them.
#pragma once
#include <rankc/runtime/program.hpp>
#include <rankc/schedule/actions.hpp>

#include <string>
#include <vector>

namespace rankc::codegen {

/// The communicator that a stream of pipeline traffic uses.
constexpr runtime::role role_of(runtime::stream s) {
  return static_cast<runtime::role>(static_cast<int>(runtime::role::to_next) + static_cast<int>(s) - static_cast<int>(runtime::stream::to_next));
}

/// All that goes from one rank to another is one queue, on one stream of either, whatever it carries.
struct pipeline_edge {
  int from, to;
  std::string carries;  // "activations and gradients"
  runtime::stream out, in;
};

/// The edges of a table, in the order of its stages. Neighbours in the ring of ranks have the streams that are named
/// after them; who else a rank talks to has what is left.
/// Errors: std::logic_error where a rank would send to more than two others, or receive from more: RC330 refuses such plans.
std::vector<pipeline_edge> edges_of(const action_table&);

/// The edge of a directed pair; there is one.
const pipeline_edge& find_edge(const std::vector<pipeline_edge>&, int from, int to);

}  // namespace rankc::codegen
