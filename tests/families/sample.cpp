// SPDX-License-Identifier: Apache-2.0
#include "sample.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace {

using names = std::set<std::string>;

template <class T>
std::string valued(const char* name, T value) {
  return std::string(name) + " " + std::to_string(static_cast<int>(value));
}

/// The axes along which a plan splits its model.
names axes_of(const rankc::plan_data& p) {
  const rankc::parallel_dims& d = p.dims;
  names all;
  for (const auto& [name, degree] : {std::pair("dp_replicate", d.dp_replicate),
                                     {"dp_shard", d.dp_shard},
                                     {"cp", d.cp},
                                     {"tp", d.tp},
                                     {"ep", d.ep},
                                     {"etp", d.etp},
                                     {"ulysses", d.ulysses}})
    if (degree > 1) all.insert(name);
  if (d.sequence_parallel) all.insert("sequence_parallel");
  if (d.pp > 1) all.insert("schedule " + std::string(p.schedule));
  else if (p.actions.microbatches > 1) all.insert("microbatches");
  return all;
}

/// The settings of communication along these axes.
names dims_of(const rankc::parallel_dims& d) {
  names all{valued("prefetch", d.prefetch)};
  if (d.dp_shard > 1) all.insert(valued("reshard", d.reshard));
  if (d.cp > 1) all.insert({valued("cp_weights", d.cp_weights), valued("cp_attention", d.cp_attention)});
  if (d.ep > 1) all.insert(valued("expert_layout", d.expert_layout));
  return all;
}

names recipe_of(const rankc::training& r) {
  names all{"optimizer " + std::string(r.optimizer.row->name), valued("moments", r.moments),
            valued("linears", r.linears), valued("rounding", r.rounding), valued("reductions", r.reductions)};
  for (const auto& [name, is_set] : {std::pair("full", r.recompute.full),
                                     {"attention", r.recompute.attention},
                                     {"activations", r.recompute.activations},
                                     {"norms", r.recompute.norms},
                                     {"every", r.recompute.every > 1},
                                     {"documents", r.has_documents()},
                                     {"frozen", !r.frozen.all().empty()},
                                     {"lora", r.lora.any()},
                                     {"nesterov", r.optimizer.number("nesterov") != 0},
                                     {"master_weights", r.master_weights}})
    if (is_set) all.insert(name);
  return all;
}

names ops_of(const rankc::plan_data& p) {
  names all;
  for (const rankc::layer_kind& kind : p.kinds)
    for (const rankc::op& o : kind.ops.ops) {
      const bool converts = o.kind->converts != rankc::conversion::none;
      const std::string name(o.kind->name);
      all.insert(converts ? valued(name.c_str(), o.over) : name);
    }
  return all;
}

}  // namespace

std::set<std::string> traits_of(const family_program& p) {
  const names axes = axes_of(p.plan);
  names all{"type " + p.type};
  if (p.plan.dims.world > 1) all.insert("ranks of " + p.job);
  if (p.plan.actions.inference) all.insert("inference");
  if (p.plan.recipe.recompute.any()) all.insert("recomputation of " + p.job + " in " + p.type);
  for (const std::string& a : axes)
    for (const std::string& b : axes) all.insert(a + " and " + b);
  all.merge(dims_of(p.plan.dims));
  all.merge(recipe_of(p.plan.recipe));
  all.merge(ops_of(p.plan));
  return all;
}

std::vector<family_program> sample(std::vector<family_program> programs) {
  std::vector<char> taken(programs.size());
  names seen;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const std::size_t before = seen.size();
    seen.merge(traits_of(programs[i]));
    if (programs[i].layout != "one" && seen.size() == before) continue;
    const auto is_of_job = [&](const family_program& p) {
      return p.job == programs[i].job && p.type == programs[i].type;
    };
    const auto first = std::find_if(programs.begin(), programs.end(), is_of_job);
    taken[static_cast<std::size_t>(first - programs.begin())] = true;
    taken[i] = true;
  }
  std::vector<family_program> some;
  for (std::size_t i = 0; i < programs.size(); ++i)
    if (taken[i]) some.push_back(std::move(programs[i]));
  return some;
}
