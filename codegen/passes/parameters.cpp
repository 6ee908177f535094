// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "passes.hpp"

namespace rankc::codegen {

namespace {

/// Tensors start at multiples of this many elements: aligned vectors in every type.
constexpr std::size_t element_alignment = 16;
constexpr std::size_t aligned_elements(std::size_t n) { return (n + element_alignment - 1) / element_alignment * element_alignment; }

group group_of(const layer_parameter& p) { return p.shared ? group::shared : p.sum_over_tp ? group::over_tp : group::own; }

/// Within a group, tensors of the same treatment stand side by side: sharded before whole, and decayed on the outside,
/// so that the optimizer's calls cover long ranges.
int order_of(const layer_parameter& p) {
  const bool sharded = p.shard_dim >= 0, matrix = p.ndim > 1;
  return sharded ? (matrix ? 0 : 1) : (matrix ? 3 : 2);
}


/// Layers of each stage: what comes before the repeated layers is on the first stage, what comes after on the last.
std::vector<std::vector<layer_use>> split_layers(const plan_data& plan) {
  std::vector<std::vector<layer_use>> stages(plan.blocks_of_stage.size());
  std::size_t stage = 0;
  int on_stage = 0, number = 0;
  for (std::size_t k = 0; k < plan.kinds.size(); ++k)
    for (int i = 0; i < plan.kinds[k].count; ++i) {
      const bool repeated = plan.kinds[k].repeated;
      if (repeated && on_stage == plan.blocks_of_stage[stage]) {
        ++stage;
        on_stage = 0;
      }
      on_stage += repeated;
      layer_use use;
      use.kind = static_cast<int>(k);
      use.name = repeated ? "layers." + std::to_string(number++) : plan.kinds[k].name;
      stages[stage].push_back(use);
    }
  return stages;
}

/// Merge neighbouring parameters of the same treatment into ranges.
std::vector<range> ranges_of(const pipeline_rank& r, auto wanted) {
  std::vector<const placed_parameter*> sorted;
  for (const placed_parameter& p : r.parameters)
    if (wanted(p)) sorted.push_back(&p);
  std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->element < b->element; });
  std::vector<range> out;
  for (const placed_parameter* p : sorted) {
    const bool decay = p->as.ndim > 1;
    const std::size_t end = p->element + aligned_elements(p->as.elements());
    if (!out.empty() && out.back().first + out.back().count == p->element && out.back().decay == decay)
      out.back().count = end - out.back().first;
    else out.push_back({p->element, end - p->element, decay});
  }
  return out;
}

std::vector<range> without_decay_split(std::vector<range> in) {
  std::vector<range> out;
  for (const range& x : in)
    if (!out.empty() && out.back().first + out.back().count == x.first) out.back().count += x.count;
    else out.push_back({x.first, x.count, false});
  return out;
}

/// A stage of a rank, and which of those already there are its neighbours.
void hold_stage(pipeline_rank& r, int stage, bool last, const std::vector<layer_use>& layers) {
  const int index = static_cast<int>(r.stages.size());
  r.stages.push_back({.stage = stage, .last = last, .layers = layers});
  if (index == 0 || r.stages[index - 1].stage + 1 != stage) return;
  r.stages[index].previous_here = index - 1;
  r.stages[index - 1].next_here = index;
}

/// Where each stage of a rank first sums into gradients, in the order of the rank's actions.
std::map<int, int> first_sums(const action_table& t, int rank) {
  std::map<int, int> at;
  for (int i = t.begin[rank]; i < t.begin[rank + 1]; ++i)
    if (t.actions[i].kind == action_kind::B || t.actions[i].kind == action_kind::W) at.try_emplace(t.actions[i].stage, i);
  return at;
}

}  // namespace

group_layout lay_out(const std::vector<layer_parameter>& parameters) {
  group_layout g;
  g.of_parameter.resize(parameters.size());
  std::vector<std::size_t> order(parameters.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto i, auto j) { return order_of(parameters[i]) < order_of(parameters[j]); });
  for (std::size_t i : order) {
    const group in = group_of(parameters[i]);
    std::size_t& size = g.size[static_cast<int>(in)];
    g.of_parameter[i] = {in, size};
    size += aligned_elements(parameters[i].elements());
  }
  return g;
}

void place_parameters(lowered& l) {
  const plan_data& plan = *l.plan;
  for (const body& b : l.bodies) l.groups.push_back(lay_out(b.parameters));
  const auto stages = split_layers(plan);
  l.ranks.resize(plan.dims.pp);
  std::set<std::string> held;  // shared parameters of earlier pipeline ranks
  std::set<std::string> tied;
  for (int rank = 0; rank < plan.dims.pp; ++rank) {
    pipeline_rank& r = l.ranks[rank];
    r.index = rank;
    for (std::size_t s = 0; s < stages.size(); ++s)
      if (plan.actions.rank_of_stage[s] == rank) hold_stage(r, static_cast<int>(s), s + 1 == stages.size(), stages[s]);

    // Regions: each layer's own group, then what is also summed over tp, then what is shared.
    std::size_t at = 0;
    struct sharing { layer_use* use; int sums_at; };
    std::map<std::string, sharing> shared_at;  // the layer that first sums into it
    const std::map<int, int> first_sum = first_sums(plan.actions, rank);
    for (group g : {group::own, group::over_tp, group::shared}) {
      const std::size_t group_start = at;
      for (std::size_t s = 0; s < r.stages.size(); ++s)
        for (std::size_t i = 0; i < r.stages[s].layers.size(); ++i) {
          layer_use& use = r.stages[s].layers[i];
          const body& b = l.bodies[use.kind];
          const group_layout& placed = l.groups[use.kind];
          std::size_t base = at;
          if (g == group::shared && placed.size[2] > 0) {
            const auto p = std::find_if(b.parameters.begin(), b.parameters.end(), [](const auto& q) { return q.shared; });
            if (auto known = shared_at.find(p->name); known != shared_at.end()) {
              base = known->second.use->base[2];
              // Of one stage's layers, backward comes to the later one first.
              const bool mine_is_first = first_sum.at(r.stages[s].stage) <= known->second.sums_at;
              (mine_is_first ? known->second.use : &use)->adds_to_shared = true;
              if (mine_is_first) known->second = {&use, first_sum.at(r.stages[s].stage)};
            } else {
              shared_at[p->name] = {&use, first_sum.at(r.stages[s].stage)};
            }
          }
          use.base[static_cast<int>(g)] = base;
          if (base != at) continue;
          at += placed.size[static_cast<int>(g)];
          for (std::size_t p = 0; p < b.parameters.size(); ++p) {
            if (placed.of_parameter[p].in != g) continue;
            const bool block = plan.kinds[use.kind].repeated;
            r.parameters.push_back({(block ? use.name + "." : "") + b.parameters[p].name, b.parameters[p],
                                    base + placed.of_parameter[p].offset,
                                    g == group::shared && held.count(b.parameters[p].name) > 0});
            if (r.parameters.back().copy) tied.insert(b.parameters[p].name);
          }
          const bool over_dp = plan.dims.dp_replicate > 1;
          if (g == group::own && placed.size[0] > 0 && over_dp)
            r.buckets.push_back({use.name, base, placed.size[0], true, false, false, static_cast<int>(s), static_cast<int>(i)});
        }
      if (g == group::over_tp && at > group_start)
        r.buckets.push_back({"replicated parameters", group_start, at - group_start, plan.dims.dp_replicate > 1, true});
    }
    for (const auto& shared : shared_at) held.insert(shared.first);
    r.parameter_elements = at;
  }
  l.shared.assign(tied.begin(), tied.end());

  for (pipeline_rank& r : l.ranks) {
    for (const placed_parameter& p : r.parameters) {
      if (!p.as.shared) continue;
      const bool is_tied = tied.count(p.name) > 0, over_dp = plan.dims.dp_replicate > 1;
      if (is_tied || over_dp || p.as.sum_over_tp)
        r.buckets.push_back({p.name, p.element, aligned_elements(p.as.elements()), over_dp, p.as.sum_over_tp, is_tied});
    }
    auto counted = [&](const placed_parameter& p, bool sharded) { return !p.copy && (p.as.shard_dim >= 0) == sharded; };
    r.squares_sharded = without_decay_split(ranges_of(r, [&](const auto& p) { return counted(p, true); }));
    r.squares_whole = without_decay_split(ranges_of(r, [&](const auto& p) { return counted(p, false); }));
    r.updates = ranges_of(r, [](const auto&) { return true; });
  }
}

}  // namespace rankc::codegen
