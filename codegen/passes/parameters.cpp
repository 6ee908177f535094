// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <rankc/codegen/names.hpp>
#include <rankc/memory/opened.hpp>
#include <set>
#include <stdexcept>

#include "input_text.hpp"
#include "passes.hpp"

namespace rankc::codegen {

namespace {

using rankc::lowering::aligned_elements;

/// Gives each layer a unique name. A layer that is not repeated has the name of its kind, if that is free.
void name_layers(const lowered& l, std::vector<std::vector<layer_use>>& stages) {
  std::set<std::string> taken;
  // Other names in the text of a stage.
  name_scope ids({"r",
                  "s",
                  "slot",
                  "at_slot",
                  "base",
                  "x",
                  "y",
                  "dy",
                  "dx",
                  "ids",
                  "targets",
                  "starts",
                  "label_count",
                  "work",
                  "accumulate",
                  "weights",
                  "gradients",
                  "first_moment",
                  "second_moment",
                  "momentum",
                  "working_copy",
                  "rope_table",
                  "loss",
                  "norm",
                  "boundary",
                  "boundary_bytes",
                  "chain",
                  "work_beside",
                  "ids_bytes",
                  "trained_weights",
                  "gathered",
                  "full_gradients",
                  "arriving",
                  "squares_of_experts",
                  "squares_sharded",
                  "squares_whole",
                  "updates",
                  "forward",
                  "backward",
                  "backward_input",
                  "backward_weight",
                  "recompute",
                  "at",
                  "real",
                  "bf16",
                  "rank",
                  "stream",
                  "role",
                  "reduction",
                  "event",
                  "range",
                  "rankc",
                  "std",
                  "host",
                  "cuda",
                  "runtime"});
  for (const named_input& i : l.plan->inputs)
    if (const input_text t = text_of_input(i); t.held == holding_kind::input) ids.take(t.formal);
  for (const body& b : l.bodies) {
    ids.take(b.id + "_layer");
    for (const layer_parameter& p : b.parameters)
      // The sum of its gradient has the parameter's name, as the sum of a layer has the layer's.
      if (p.shared) taken.insert(p.name.text());
  }
  for (const bool repeated : {true, false})  // names of repeated layers are parts of their parameters' names
    for (std::vector<layer_use>& uses : stages)
      for (layer_use& use : uses) {
        if (use.name.empty() == repeated) continue;
        if (!repeated) use.name = l.bodies[use.kind].name;
        use.id = ids.take(use.name, {"d_*", "*_halfway", "*_out", "d_*_out"});
        if (!taken.insert(use.name).second) use.name = use.id;
      }
}

/// The layers of each stage.
std::vector<std::vector<layer_use>> split_layers(const lowered& l) {
  const plan_data& plan = *l.plan;
  std::vector<std::vector<layer_use>> stages;
  int number = 0;
  for (const std::vector<int>& forms : forms_of_stages(plan)) {
    std::vector<layer_use>& uses = stages.emplace_back();
    for (int form : forms) {
      layer_use& use = uses.emplace_back();
      use.kind = form;
      if (plan.kinds[l.bodies[form].kind].repeated) use.name = "layers." + std::to_string(number++);
    }
  }
  name_layers(l, stages);
  return stages;
}

/// Merges neighbouring parameters with the same treatment into ranges.
std::vector<range> ranges_of(const pipeline_rank& r, auto wanted) {
  std::vector<const placed_parameter*> sorted;
  for (const placed_parameter& p : r.parameters)
    if (wanted(p)) sorted.push_back(&p);
  std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->element < b->element; });
  std::vector<range> out;
  for (const placed_parameter* p : sorted) {
    const bool decay = p->as.ndim > 1;
    const std::size_t end = p->element + aligned_elements(p->as.shard());
    if (!out.empty() && out.back().first + out.back().count == p->element && out.back().decay == decay &&
        out.back().balances == p->as.balances)
      out.back().count = end - out.back().first;
    else out.push_back({p->element, end - p->element, decay, p->as.balances});
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

/// Adds the stages of a rank.
void hold_stages(pipeline_rank& r, const action_table& t, const std::vector<std::vector<layer_use>>& layers) {
  for (int s = 0; s < t.stages(); ++s) {
    const bool reversed = t.bidirectional() && t.reversed_rank_of_stage[s] == r.index;
    if (t.rank_of_stage[s] != r.index && !reversed) continue;
    const bool copy = t.rank_of_stage[s] != r.index;
    const std::string name = "stage_" + std::to_string(s) + (copy ? "_reversed" : "");
    r.stages.push_back(
        {.stage = s, .name = name, .last = s + 1 == t.stages(), .copy = copy, .layers = layers[s]});
  }
}

/// The action in which each stage of a rank first sums gradients.
std::map<int, int> first_sums(const action_table& t, int rank) {
  std::map<int, int> at;
  for (int i = t.begin[rank]; i < t.begin[rank + 1]; ++i)
    if (t.actions[i].kind == action_kind::B || t.actions[i].kind == action_kind::W)
      at.try_emplace(t.actions[i].stage, i);
  return at;
}

/// Builds the regions of one pipeline rank: each layer's own group, then its experts, then parameters that
/// are also summed over tp, then parameters that layers share. Parameters that are not trained come last,
/// first those of layers and then those that layers share.
class regions {
 public:
  regions(const lowered& l, pipeline_rank& r)
      : l_(l), plan_(*l.plan), r_(r), first_sum_(first_sums(plan_.actions, r.index)) {}

  void place() {
    each_layer([&](int s, int i) { place(group::own, s, i); });
    each_layer([&](int s, int i) { place(group::experts, s, i); });
    const std::size_t over_region = at_;
    each_layer([&](int s, int i) { place(group::over_region, s, i); });
    if (at_ > over_region)
      r_.buckets.push_back({.name = "replicated parameters",
                            .id = {},
                            .first = over_region,
                            .count = at_ - over_region,
                            .over_region = true});
    each_layer([&](int s, int i) { place_shared(r_.stages[s], r_.stages[s].layers[i], true); });
    r_.trained_elements = at_;
    each_layer([&](int s, int i) { place(group::frozen, s, i); });
    each_layer([&](int s, int i) { place_shared(r_.stages[s], r_.stages[s].layers[i], false); });
    r_.parameter_elements = at_;
  }

 private:
  void each_layer(auto visit) {
    for (std::size_t s = 0; s < r_.stages.size(); ++s)
      for (std::size_t i = 0; i < r_.stages[s].layers.size(); ++i)
        visit(static_cast<int>(s), static_cast<int>(i));
  }
  void place(group g, int stage, int layer) {
    layer_use& use = r_.stages[stage].layers[layer];
    const group_layout& placed = l_.groups[use.kind];
    const std::size_t size = placed.size[static_cast<int>(g)];
    use.base[static_cast<int>(g)] = at_;
    if (size == 0) return;
    const body& b = l_.bodies[use.kind];
    for (std::size_t p = 0; p < b.parameters.size(); ++p)
      if (placed.of_parameter[p].in == g)
        r_.parameters.push_back(
            {(plan_.kinds[b.kind].repeated ? use.name + "." : "") + b.parameters[p].name.text(),
             b.parameters[p], at_ + placed.of_parameter[p].offset, r_.stages[stage].copy});
    if (g == group::own || g == group::experts) {
      const bool whole = g == group::own;
      r_.buckets.push_back({.name = use.name + (whole ? "" : " experts"),
                            .id = use.id + (whole ? "" : "_experts"),
                            .first = at_,
                            .count = size,
                            .stage = stage,
                            .after_layer = layer});
    }
    at_ += size;
  }

  /// The first layer with a shared parameter places it. The layer whose backward runs first overwrites the
  /// gradient; the others add to it.
  void place_shared(const stage_plan& s, layer_use& use, bool trained) {
    const body& b = l_.bodies[use.kind];
    const std::vector<int>& parameters = l_.groups[use.kind].shared;
    use.shared.resize(parameters.size());
    const auto sums = first_sum_.find(s.stage);
    const int sums_at = sums == first_sum_.end() ? 0 : sums->second;
    for (std::size_t index = 0; index < parameters.size(); ++index) {
      const layer_parameter& as = b.parameters[parameters[index]];
      if (as.trainable != trained) continue;
      const auto [known, is_new] = shared_.try_emplace(as.name.text(), sharing{&use, index, sums_at});
      if (is_new) {
        use.shared[index] = {at_};
        r_.parameters.push_back({as.name.text(), as, at_, s.copy});
        at_ += aligned_elements(as.shard());
        continue;
      }
      sharing& first = known->second;
      use.shared[index] = {first.use->shared[first.index].element};
      // Within a stage, backward reaches the later layer first.
      if (sums_at > first.sums_at) {
        use.shared[index].adds = true;
      } else {
        first.use->shared[first.index].adds = true;
        first = {&use, index, sums_at};
      }
    }
  }

  struct sharing {
    layer_use* use;     // the one whose backward runs first
    std::size_t index;  // index of the parameter there
    int sums_at;
  };
  const lowered& l_;
  const plan_data& plan_;
  pipeline_rank& r_;
  const std::map<int, int> first_sum_;
  std::map<std::string, sharing> shared_;
  std::size_t at_ = 0;
};

/// Finds the pairs of ranks that hold the same parameters. If two stages share a parameter, the later
/// holder's is a copy too.
/// Errors: std::logic_error if a rank would be in two pairs.
void pair_copies(lowered& l) {
  std::map<std::string, int> holder;  // the first holder of each parameter, by name
  for (pipeline_rank& r : l.ranks)
    for (placed_parameter& p : r.parameters)
      if (!p.copy) p.copy = !holder.try_emplace(p.name, r.index).second;
  std::vector<int> partner(l.ranks.size(), -1);
  for (const pipeline_rank& r : l.ranks)
    for (const placed_parameter& p : r.parameters) {
      const int first = holder.at(p.name);
      if (first == r.index) continue;
      for (auto [rank, other] : {std::pair(first, r.index), std::pair(r.index, first)}) {
        if (partner[rank] >= 0 && partner[rank] != other)
          throw std::logic_error(fmt::format(
              "pipeline rank {} has parameters in common with rank {} and with rank {}, which RC331 refuses",
              rank, partner[rank], other));
        partner[rank] = other;
      }
    }
  for (std::size_t r = 0; r < partner.size(); ++r)
    if (partner[r] > static_cast<int>(r)) l.tied.push_back({static_cast<int>(r), partner[r]});
}

norm_over norm_over_of(const layer_parameter& p) {
  if (p.differs_over_replicas || p.differs_over_ep) return norm_over::experts;
  return p.differs_over_region ? norm_over::region : norm_over::nothing;
}

/// Makes the buckets of shared parameters, decides how each bucket is summed, and drops buckets that need no
/// sum.
void finish_buckets(lowered& l, pipeline_rank& r) {
  const bool over_dp = layout(l.plan->dims).groups(axis::replicas).size() > 1;
  const auto pair = std::find_if(l.tied.begin(), l.tied.end(),
                                 [&](const auto& t) { return t[0] == r.index || t[1] == r.index; });
  const auto is_tied = [&](const placed_parameter& p) {
    if (pair == l.tied.end()) return false;
    const pipeline_rank& other = l.ranks[(*pair)[0] == r.index ? (*pair)[1] : (*pair)[0]];
    return std::any_of(other.parameters.begin(), other.parameters.end(),
                       [&](const auto& q) { return q.name == p.name; });
  };
  // If two ranks share several parameters, both have them in one order.
  std::map<std::string, const placed_parameter*> shared;
  for (const placed_parameter& p : r.parameters)
    if (p.as.shared && p.as.trainable) shared.emplace(p.name, &p);
  for (const auto& [name, p] : shared)
    r.buckets.push_back({.name = name,
                         .id = {},
                         .first = p->element,
                         .count = aligned_elements(p->as.shard()),
                         .over_region = p->as.sum_over_region});
  name_scope ids;
  for (bucket& b : r.buckets) {
    const auto has = [&](auto what) {
      return std::any_of(r.parameters.begin(), r.parameters.end(), [&](const placed_parameter& p) {
        return p.element >= b.first && p.element < b.first + b.count && what(p);
      });
    };
    b.over_dp = over_dp && !has([](const placed_parameter& p) { return p.as.differs_over_replicas; });
    b.tied = has(is_tied);
    if (b.name == "replicated parameters") b.id = "replicated";
    else if (b.id.empty()) b.id = b.name;
    b.id = ids.take(b.id);
    // A sum has one name on all its ranks.
    if (b.name == "replicated parameters")
      b.name += " of pipeline rank " + std::to_string(b.tied ? (*pair)[0] : r.index);
  }
  std::erase_if(r.buckets, [](const bucket& b) { return !b.over_dp && !b.over_region && !b.tied; });
}

}  // namespace

void place_parameters(lowered& l) {
  const plan_data& plan = *l.plan;
  for (const body& b : l.bodies) l.groups.push_back(lay_out(b.parameters, &layer_parameter::shard));
  const auto layers = split_layers(l);
  l.ranks.resize(plan.dims.pp);
  for (int rank = 0; rank < plan.dims.pp; ++rank) {
    pipeline_rank& r = l.ranks[rank];
    r.index = rank;
    r.overlaps = overlaps(plan.actions, rank);
    hold_stages(r, plan.actions, layers);
    regions(l, r).place();
  }
  pair_copies(l);
  if (!l.trains()) {
    for (pipeline_rank& r : l.ranks) r.buckets.clear();
    return;
  }
  for (pipeline_rank& r : l.ranks) {
    finish_buckets(l, r);
    for (int c = 0; c < n_norm_over; ++c)
      r.squares[c] = without_decay_split(ranges_of(r, [&](const placed_parameter& p) {
        return !p.copy && p.as.trainable && !p.as.balances.any() && static_cast<int>(norm_over_of(p.as)) == c;
      }));
    r.updates = ranges_of(r, [](const auto& p) { return p.as.trainable; });
  }
}

}  // namespace rankc::codegen
