// SPDX-License-Identifier: Apache-2.0
// When the weights of a rank's layers are gathered, where layers take turns in the places for them.
#pragma once
#include <rankc/codegen/lowered.hpp>

#include <array>
#include <vector>

namespace rankc::codegen {

/// The layers of a stage, by their indices, that have something to do in a phase, in its order.
std::vector<int> layers_in(const lowered&, const stage_plan&, phase);

phase phase_of(action_kind);

/// What is gathered for a layer of a rank: indices into its gatherings.
std::vector<std::size_t> gathered_for(const pipeline_rank&, int stage, int layer);

class gather_order {
 public:
  /// Of a rank that gathers its weights for each layer.
  gather_order(const lowered&, const pipeline_rank&, const action_table&);

  /// What is to be gathered before the layer that comes next: its own weights, and those of the ones after it, as many as the
  /// plan says, where they have memory of their own; none that are there.
  std::vector<std::size_t> next(int stage, int layer, phase);

 private:
  using layer_of_stage = std::array<int, 2>;
  bool reads_gathered(int stage, int layer, phase) const;
  /// Whether the weights of two layers have memory in common.
  bool meet(const layer_of_stage&, const layer_of_stage&) const;
  void hold(const layer_of_stage&, std::vector<std::size_t>& to_gather);
  /// Whether the memory of what read `next` needs has no other weights that are read before it.
  bool is_free(std::size_t next) const;

  const lowered& l_;
  const pipeline_rank& r_;
  std::size_t ahead_;                           // layers
  std::vector<layer_of_stage> reads_;           // of weights, in the order of the rank's actions
  std::size_t at_ = 0;                          // the next of them
  std::vector<layer_of_stage> held_;            // whose weights are there
};

}  // namespace rankc::codegen
