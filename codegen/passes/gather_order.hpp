// SPDX-License-Identifier: Apache-2.0
// When the weights of a rank's layers are gathered, where layers take turns in the places for them.
#pragma once
#include <rankc/codegen/lowered.hpp>
#include <rankc/memory/gather_order.hpp>

#include <vector>

namespace rankc::codegen {

/// The layers of a stage, by their indices, that have something to do in a phase, in its order.
std::vector<int> layers_in(const lowered&, const stage_plan&, phase);

phase phase_of(action_kind);

/// What is gathered for a layer of a rank: indices into its gatherings.
std::vector<std::size_t> gathered_for(const pipeline_rank&, int stage, int layer);

/// What a rank gathers, layer by layer.
class layer_gathers {
 public:
  /// Of a rank that gathers its weights for each layer.
  layer_gathers(const lowered&, const pipeline_rank&, const action_table&);

  /// What is to be gathered before the layer that comes next: indices into the rank's gatherings.
  std::vector<std::size_t> next(int stage, int layer, phase);

 private:
  const lowered& l_;
  const pipeline_rank& r_;
  std::vector<std::vector<std::size_t>> gatherings_;  // of each layer that has some
  rankc::lowering::gather_order order_;
};

}  // namespace rankc::codegen
