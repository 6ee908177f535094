// SPDX-License-Identifier: Apache-2.0
#include "gather_order.hpp"

#include <algorithm>

namespace rankc::codegen {

phase phase_of(action_kind k) {
  return k == action_kind::B   ? phase::backward
         : k == action_kind::I ? phase::backward_input
         : k == action_kind::W ? phase::backward_weight
                               : phase::forward;
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

gather_order::gather_order(const lowered& l, const pipeline_rank& r, const action_table& t)
    : l_(l), r_(r), ahead_(static_cast<std::size_t>(l.plan->dims.prefetch)) {
  for (int i = t.begin[r.index]; i < t.begin[r.index + 1]; ++i)
    for (int s = 0; computes(t.actions[i].kind) && s < static_cast<int>(r.stages.size()); ++s)
      for (int layer : layers_in(l, r.stages[s], phase_of(t.actions[i].kind)))
        if (r.stages[s].stage == t.actions[i].stage && reads_gathered(s, layer, phase_of(t.actions[i].kind))) reads_.push_back({s, layer});
}

bool gather_order::reads_gathered(int stage, int layer, phase p) const {
  if (gathered_for(r_, stage, layer).empty()) return false;
  const body& b = l_.bodies[r_.stages[stage].layers[layer].kind];
  const bool repeats = p == phase::backward || p == phase::backward_input;
  return b.uses(p, space::weight) || (repeats && b.uses(phase::recompute, space::weight));
}

bool gather_order::meet(const layer_of_stage& a, const layer_of_stage& b) const {
  const gathering &x = r_.gatherings[gathered_for(r_, a[0], a[1]).front()], &y = r_.gatherings[gathered_for(r_, b[0], b[1]).front()];
  return x.first < y.last && y.first < x.last;
}

void gather_order::hold(const layer_of_stage& of, std::vector<std::size_t>& to_gather) {
  if (std::find(held_.begin(), held_.end(), of) != held_.end()) return;
  std::erase_if(held_, [&](const layer_of_stage& other) { return meet(other, of); });
  held_.push_back(of);
  for (std::size_t g : gathered_for(r_, of[0], of[1])) to_gather.push_back(g);
}

std::vector<std::size_t> gather_order::next(int stage, int layer, phase p) {
  std::vector<std::size_t> to_gather;
  if (!reads_gathered(stage, layer, p)) return to_gather;
  hold(reads_[at_], to_gather);
  for (std::size_t next = at_ + 1; next < reads_.size() && next <= at_ + ahead_ && is_free(next); ++next) hold(reads_[next], to_gather);
  ++at_;
  return to_gather;
}

bool gather_order::is_free(std::size_t next) const {
  return std::none_of(reads_.begin() + static_cast<std::ptrdiff_t>(at_), reads_.begin() + static_cast<std::ptrdiff_t>(next),
                      [&](const layer_of_stage& before) { return before != reads_[next] && meet(before, reads_[next]); });
}

}  // namespace rankc::codegen
