// SPDX-License-Identifier: Apache-2.0
// What the layers of a rank read where ranks keep shards: the tensors that are gathered together, and where all of each lies.
// Gradients lie in the same order in a region of their own, until they are dealt out. Where weights are let go after each
// layer, layers take turns in two places; else each has its own.
#include <algorithm>
#include <map>

#include <rankc/codegen/names.hpp>
#include <rankc/program/gathered_places.hpp>

#include "passes.hpp"

namespace rankc::codegen {

namespace {

using rankc::program::aligned_elements;

class sharder {
 public:
  sharder(const lowered& l, pipeline_rank& r) : l_(l), r_(r) {
    for (std::size_t p = 0; p < r.parameters.size(); ++p) index_[r.parameters[p].element] = static_cast<int>(p);
  }

  void run() {
    for (std::size_t s = 0; s < r_.stages.size(); ++s)
      for (std::size_t i = 0; i < r_.stages[s].layers.size(); ++i) {
        layer_use& use = r_.stages[s].layers[i];
        uses_.emplace_back(&use, places_.next());
        arriving_.next();
        for (int g = 0; g < n_groups; ++g) use.gathered_base[g] = places_.take(l_.gathered_groups[use.kind].size[g]);
        gathering own = make(use.name, use.id, static_cast<int>(s), static_cast<int>(i));
        for (std::size_t p = 0; p < l_.bodies[use.kind].parameters.size(); ++p) add(own, use, p);
        if (!own.parts.empty()) r_.gatherings.push_back(std::move(own));
      }
    r_.gathered_elements = places_.elements();
    if (adds_sums()) r_.arriving_elements = arriving_.elements();
    begin_at_places();
  }

 private:
  /// Whether a gradient is dealt out more than once in a step, and what arrives later added up.
  bool adds_sums() const {
    return l_.trains() && l_.reshards() && (l_.plan->actions.microbatches > 1 || shares_);
  }

  gathering make(const std::string& name, const std::string& id, int stage, int layer) {
    return {.name = name, .id = ids_.take(id), .stage = stage, .layer = layer, .place = uses_.back().second};
  }

  /// A parameter of a layer. One that layers share is gathered for each of them where they take turns, else once.
  void add(gathering& own, layer_use& use, std::size_t p) {
    const layer_parameter& as = l_.bodies[use.kind].parameters[p];
    const group_layout::place &kept = l_.groups[use.kind].of_parameter[p], &whole = l_.gathered_groups[use.kind].of_parameter[p];
    const int index = index_.at(use.element(kept));
    const auto put = [&](gathering& into, std::size_t gathered) {
      into.parts.push_back({index, gathered, as.trainable ? arriving_.take(aligned_elements(as.shard())) : 0});
      if (as.trainable) into.trained.push_back(into.parts.back());
    };
    if (kept.in != group::shared) return put(own, use.gathered_base[static_cast<int>(whole.in)] + whole.offset);
    shared_use& here = use.shared[kept.offset];
    const auto [known, is_new] = shared_.try_emplace(here.element, 0);
    shares_ |= !is_new && as.trainable;
    if (is_new || l_.reshards()) {
      known->second = places_.take(aligned_elements(as.stored()));
      const std::string& name = r_.parameters[static_cast<std::size_t>(index)].name;
      r_.gatherings.push_back(l_.reshards() ? make(name + " of " + use.name, name + "_of_" + use.id, own.stage, own.layer)
                                            : make(name, name, -1, -1));
      put(r_.gatherings.back(), known->second);
    }
    here.gathered = known->second;
  }

  /// What was counted from the begin of a place lies in that place.
  void begin_at_places() {
    for (gathering& g : r_.gatherings)
      for (auto* parts : {&g.parts, &g.trained})
        for (gathering::part& p : *parts) p.gathered += places_.begin(g.place), p.arriving += arriving_.begin(g.place);
    for (const auto& [use, place] : uses_) {
      for (std::size_t& base : use->gathered_base) base += places_.begin(place);
      for (shared_use& each : use->shared) each.gathered += places_.begin(place);
    }
  }

  const lowered& l_;
  pipeline_rank& r_;
  rankc::program::gathered_places places_{l_.reshards()}, arriving_{true};
  std::vector<std::pair<layer_use*, std::size_t>> uses_;  // and the place of each
  name_scope ids_;
  bool shares_ = false;                         // layers of the rank have a trained parameter in common
  std::map<std::size_t, int> index_;            // of parameters, by their elements
  std::map<std::size_t, std::size_t> shared_;   // where each that layers share is gathered, by its element
};

/// Layers read what the rank keeps.
void read_kept(pipeline_rank& r) {
  for (stage_plan& s : r.stages)
    for (layer_use& use : s.layers) {
      std::copy(std::begin(use.base), std::end(use.base), use.gathered_base);
      for (shared_use& each : use.shared) each.gathered = each.element;
    }
}

}  // namespace

std::size_t pipeline_rank::shard_elements(const std::vector<gathering::part>& of) const {
  std::size_t elements = 0;
  for (const gathering::part& p : of) elements += parameters[static_cast<std::size_t>(p.parameter)].as.shard();
  return elements;
}

void shard_parameters(lowered& l) {
  for (const body& b : l.bodies) l.gathered_groups.push_back(lay_out(b.parameters, &layer_parameter::stored));
  for (pipeline_rank& r : l.ranks) {
    if (l.is_sharded()) sharder(l, r).run();
    else read_kept(r);
  }
}

}  // namespace rankc::codegen
