// SPDX-License-Identifier: Apache-2.0
// Places the full tensors that layers read if ranks keep shards, and groups the shards that are gathered
// together. Full gradients are in a separate region until they are reduce-scattered. If weights are freed
// after each layer, layers share a few buffers in turn. If they are freed after a stage, stages share
// buffers. Otherwise each layer has its own buffer.
#include <algorithm>
#include <map>

#include <rankc/codegen/names.hpp>
#include <rankc/memory/gathered_places.hpp>

#include "passes.hpp"

namespace rankc::codegen {

namespace {

using rankc::lowering::aligned_elements;
using rankc::lowering::is_shared_out;

/// Makes a layer read shared parameters where the rank keeps them.
void read_kept_shared(layer_use& use) {
  for (shared_use& each : use.shared) each.gathered = each.summed = each.element;
}

class sharder {
 public:
  sharder(const lowered& l, pipeline_rank& r)
      : l_(l),
        r_(r),
        turns_(l.plan->dims, l.plan->actions, evaluation_of(l.plan->actions, l.plan->dims), r.index,
               says_unshard(l.plan->actions)) {
    for (std::size_t p = 0; p < r.parameters.size(); ++p)
      index_[r.parameters[p].element] = static_cast<int>(p);
  }

  void run() {
    for (std::size_t s = 0; s < r_.stages.size(); ++s)
      for (std::size_t i = 0; i < r_.stages[s].layers.size(); ++i) {
        layer_use& use = r_.stages[s].layers[i];
        const place here = turns_.next(r_.stages[s].stage);
        gathering own = make(axis::fsdp, use.name, use.id, static_cast<int>(s), static_cast<int>(i));
        gathering experts = make(axis::efsdp, use.name + " experts", use.id + "_experts", static_cast<int>(s),
                                 static_cast<int>(i));
        for (int g = 0; g < n_groups; ++g) {
          use.gathered_base[g] = use.summed_base[g] = use.base[g];
          if (!is_shared_out(static_cast<group>(g), l_.plan->dims)) continue;
          const place at =
              turns_.take(here, l_.gathered_groups[use.kind].size[g], g != static_cast<int>(group::frozen));
          use.gathered_base[g] = at.weights;
          use.summed_base[g] = at.sums;
        }
        for (std::size_t p = 0; p < l_.bodies[use.kind].parameters.size(); ++p)
          add(l_.bodies[use.kind].parameters[p].experts ? experts : own, use, p);
        if (!shares_out_dense()) read_kept_shared(use);
        uses_.push_back({&use, here});
        for (gathering* g : {&own, &experts})
          if (!g->parts.empty()) keep(std::move(*g), here);
      }
    r_.gathered_elements = turns_.weights.elements();
    r_.summed_elements = turns_.sums.elements();
    if (adds_sums()) r_.arriving_elements = turns_.arriving.elements();
    begin_at_places();
  }

 private:
  using place = rankc::lowering::layer_turns::place;

  /// True if ranks shard the weights that layers share, which are not experts.
  bool shares_out_dense() const { return weight_shards(l_.plan->dims) > 1; }

  /// True if a gradient is reduce-scattered more than once in a step, so that later results are added.
  bool adds_sums() const {
    return l_.trains() && l_.reshards() && (l_.plan->actions.microbatches > 1 || shares_);
  }

  gathering make(axis over, const std::string& name, const std::string& id, int stage, int layer) {
    return {.over = over, .name = name, .id = ids_.take(id), .stage = stage, .layer = layer};
  }
  void keep(gathering g, place in) {
    r_.gatherings.push_back(std::move(g));
    places_.push_back(in);
  }

  /// Adds a parameter of a layer to a shard group. A parameter that layers share is gathered for each of them
  /// if layers use buffers in turn; otherwise it is gathered once.
  void add(gathering& own, layer_use& use, std::size_t p) {
    const layer_parameter& as = l_.bodies[use.kind].parameters[p];
    if (as.shards == 1) return;
    const group_layout::place &kept = l_.groups[use.kind].of_parameter[p],
                              &whole = l_.gathered_groups[use.kind].of_parameter[p];
    const int index = index_.at(use.element(kept));
    const auto put = [&](gathering& into, place at) {
      const std::size_t arriving = as.trainable ? turns_.arrive(aligned_elements(as.shard())) : 0;
      into.parts.push_back({index, at.weights, arriving});
      if (as.trainable) into.trained.push_back({index, at.sums, arriving});
    };
    if (kept.in != group::shared) return put(own, {use.gathered(whole), use.summed(whole)});
    shared_use& here = use.shared[kept.offset];
    const auto [known, is_new] = shared_.try_emplace(here.element);
    shares_ |= !is_new && as.trainable;
    if (is_new || l_.reshards()) {
      const place in = turns_.shared();
      known->second = turns_.take(in, aligned_elements(as.stored()), as.trainable);
      const std::string& name = r_.parameters[static_cast<std::size_t>(index)].name;
      gathering alone = l_.reshards() ? make(axis::fsdp, name + " of " + use.name, name + "_of_" + use.id,
                                             own.stage, own.layer)
                                      : make(axis::fsdp, name, name, -1, -1);
      put(alone, known->second);
      keep(std::move(alone), in);
    }
    here.gathered = known->second.weights;
    here.summed = known->second.sums;
  }

  /// Adds the offset of each buffer to the offsets inside it.
  void begin_at_places() {
    const std::vector<std::size_t> weights = turns_.weights.begins(), sums = turns_.sums.begins(),
                                   arriving = turns_.arriving.begins();
    for (std::size_t g = 0; g < places_.size(); ++g) {
      gathering& of = r_.gatherings[g];
      const auto [weight, sum] = places_[g];
      of.first = weights[weight];
      of.last = of.first + turns_.weights.size(weight);
      for (gathering::part& p : of.parts) p.whole += weights[weight];
      for (gathering::part& p : of.trained) p.whole += sums[sum];
      for (auto* parts : {&of.parts, &of.trained})
        for (gathering::part& p : *parts) p.arriving += sum < arriving.size() ? arriving[sum] : 0;
    }
    for (const auto& [use, in] : uses_) {
      for (int g = 0; g < n_groups; ++g)
        if (is_shared_out(static_cast<group>(g), l_.plan->dims)) {
          use->gathered_base[g] += weights[in.weights];
          use->summed_base[g] += sums[in.sums];
        }
      if (!shares_out_dense()) continue;
      const place shared = l_.reshards() ? in : turns_.shared();
      for (shared_use& each : use->shared) {
        each.gathered += weights[shared.weights];
        each.summed += sums[shared.sums];
      }
    }
  }

  const lowered& l_;
  pipeline_rank& r_;
  rankc::lowering::layer_turns turns_;
  std::vector<std::pair<layer_use*, place>> uses_;
  std::vector<place> places_;  // one for each gathering
  name_scope ids_;
  bool shares_ = false;                  // layers of the rank have a trained parameter in common
  std::map<std::size_t, int> index_;     // index of each parameter, by its element
  std::map<std::size_t, place> shared_;  // the gathered place of each shared parameter, by its element
};

/// Makes layers read the tensors that the rank keeps.
void read_kept(pipeline_rank& r) {
  for (stage_plan& s : r.stages)
    for (layer_use& use : s.layers) {
      std::copy(std::begin(use.base), std::end(use.base), use.gathered_base);
      std::copy(std::begin(use.base), std::end(use.base), use.summed_base);
      read_kept_shared(use);
    }
}

}  // namespace

std::size_t pipeline_rank::shard_elements(const std::vector<gathering::part>& of) const {
  std::size_t elements = 0;
  for (const gathering::part& p : of)
    elements += parameters[static_cast<std::size_t>(p.parameter)].as.shard();
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
