// SPDX-License-Identifier: Apache-2.0
#include "gather_order.hpp"

#include <algorithm>
#include <utility>

namespace rankc::codegen {

phase phase_of(action_kind k) {
  switch (k) {
    case action_kind::B:
      return phase::backward;
    case action_kind::I:
      return phase::backward_input;
    case action_kind::W:
      return phase::backward_weight;
    default:
      return phase::forward;
  }
}

std::vector<int> layers_in(const lowered& l, const stage_plan& s, phase p) {
  std::vector<int> all;
  for (int layer = 0; layer < static_cast<int>(s.layers.size()); ++layer)
    if (!l.bodies[s.layers[layer].kind].calls(p).empty()) all.push_back(layer);
  if (p != phase::forward) std::reverse(all.begin(), all.end());
  return all;
}

std::vector<std::size_t> gathered_for(const pipeline_rank& r, int stage, int layer) {
  std::vector<std::size_t> all;
  for (std::size_t g = 0; g < r.gatherings.size(); ++g)
    if (r.gatherings[g].stage == stage && r.gatherings[g].layer == layer) all.push_back(g);
  return all;
}

namespace {

bool reads_weights(const lowered& l, const stage_plan& s, int layer, phase p) {
  const body& b = l.bodies[s.layers[layer].kind];
  const bool repeats = p == phase::backward || p == phase::backward_input;
  return b.uses(p, space::weight) || (repeats && b.uses(phase::recompute, space::weight));
}

/// The shard groups of each layer of the rank that has some.
std::vector<std::vector<std::size_t>> gatherings_of_layers(const pipeline_rank& r) {
  std::vector<std::vector<std::size_t>> all;
  for (int s = 0; s < static_cast<int>(r.stages.size()); ++s)
    for (int layer = 0; layer < static_cast<int>(r.stages[s].layers.size()); ++layer)
      if (auto of = gathered_for(r, s, layer); !of.empty()) all.push_back(std::move(of));
  return all;
}

std::vector<rankc::lowering::gather_order::extent> memory_of(
    const pipeline_rank& r, const std::vector<std::vector<std::size_t>>& layers) {
  std::vector<rankc::lowering::gather_order::extent> all;
  for (const auto& gatherings : layers)
    all.push_back({r.gatherings[gatherings.front()].first, r.gatherings[gatherings.front()].last});
  return all;
}

/// The layers whose weights the rank's actions read, in order.
std::vector<int> reads_of_weights(const lowered& l, const pipeline_rank& r, const action_table& t,
                                  const std::vector<std::vector<std::size_t>>& layers) {
  std::vector<int> reads;
  for (int i = t.begin[r.index]; i < t.begin[r.index + 1]; ++i)
    for (int s = 0; computes(t.actions[i].kind) && s < static_cast<int>(r.stages.size()); ++s) {
      if (r.stages[s].stage != t.actions[i].stage) continue;
      for (int layer : layers_in(l, r.stages[s], phase_of(t.actions[i].kind))) {
        const auto at = std::find(layers.begin(), layers.end(), gathered_for(r, s, layer));
        if (at != layers.end() && reads_weights(l, r.stages[s], layer, phase_of(t.actions[i].kind)))
          reads.push_back(static_cast<int>(at - layers.begin()));
      }
    }
  return reads;
}

}  // namespace

layer_gathers::layer_gathers(const lowered& l, const pipeline_rank& r, const action_table& t)
    : l_(l),
      r_(r),
      gatherings_(gatherings_of_layers(r)),
      order_(reads_of_weights(l, r, t, gatherings_), memory_of(r, gatherings_), l.plan->dims.prefetch) {}

std::vector<std::size_t> layer_gathers::next(int stage, int layer, phase p) {
  std::vector<std::size_t> to_gather;
  if (gathered_for(r_, stage, layer).empty() || !reads_weights(l_, r_.stages[stage], layer, p))
    return to_gather;
  for (const int of : order_.next())
    to_gather.insert(to_gather.end(), gatherings_[of].begin(), gatherings_[of].end());
  return to_gather;
}

}  // namespace rankc::codegen
