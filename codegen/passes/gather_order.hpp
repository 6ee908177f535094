// SPDX-License-Identifier: Apache-2.0
// When the weights of a rank's layers are gathered, if layers share a few buffers in turn.
#pragma once
#include <rankc/codegen/lowered.hpp>
#include <rankc/memory/gather_order.hpp>

#include <vector>

namespace rankc::codegen {

/// Indices of the layers of a stage that have ops in a phase, in the order of the phase.
std::vector<int> layers_in(const lowered&, const stage_plan&, phase);

phase phase_of(action_kind);

/// The shard groups of a layer: indices into the rank's gatherings.
std::vector<std::size_t> gathered_for(const pipeline_rank&, int stage, int layer);

/// The gathers of a rank, layer by layer.
class layer_gathers {
 public:
  /// For a rank that gathers its weights for each layer.
  layer_gathers(const lowered&, const pipeline_rank&, const action_table&);

  /// The shard groups to gather before the next layer: indices into the rank's gatherings.
  std::vector<std::size_t> next(int stage, int layer, phase);

 private:
  const lowered& l_;
  const pipeline_rank& r_;
  std::vector<std::vector<std::size_t>> gatherings_;  // one entry for each layer that has shard groups
  rankc::lowering::gather_order order_;
};

}  // namespace rankc::codegen
