// SPDX-License-Identifier: Apache-2.0
#include "plan.hpp"

#include <rankc/plan/make_plan.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace fuzz {

namespace {

/// A model as plans take it; `Repeated` says which entries are repeated.
template <bool... Repeated>
struct net {
  const fuzz::model* from;
  int vocab, vocab_used;
  void check(report& out) const { check_sizes(out, {{"vocab", vocab}}); }
  auto stack() const {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return sequential(part<Repeated>(from->entries[I])...);
    }(std::make_index_sequence<sizeof...(Repeated)>{});
  }

 private:
  template <bool R>
  static auto part(const entry& e) {
    if constexpr (R) return repeat<layer>{e.count, e.layer};
    else return e.layer;
  }
};

template <bool... Repeated>
struct net_with_sizes : net<Repeated...> {
  model_sizes sizes() const { return this->from->sizes; }
};

plan_data make_with(const plan& p, const std::string& name, const auto& model) {
  const parallel_dims dims = resolve(p.dims);
  const fuzz::schedule schedule = make_schedule(p.schedule, dims.pp >= 1 ? dims.pp : 1);
  return make_plan(name, model, p.dims, schedule, p.recipe, clusters::cpu, p.stage_layers);
}

template <bool... Repeated>
bool try_pattern(const plan& p, const std::string& name, plan_data& out) {
  const fuzz::model& m = p.model;
  constexpr bool wanted[]{Repeated...};
  if (m.entries.size() != sizeof...(Repeated)) return false;
  for (std::size_t i = 0; i < m.entries.size(); ++i)
    if (m.entries[i].repeated != wanted[i]) return false;
  out = make_with(p, name, net<Repeated...>{&m, m.vocab, m.vocab_used});
  return true;
}

bool try_sizes(const plan& p, const std::string& name, plan_data& out) {
  const fuzz::model& m = p.model;
  if (!m.offers_sizes || m.entries.size() != 3 || !m.entries[1].repeated) return false;
  out = make_with(p, name, net_with_sizes<false, true, false>{{&m, m.vocab, m.vocab_used}});
  return true;
}

bool trains_nothing(const plan& p) {
  const report said = make(p, "one").diagnostics;
  return std::any_of(said.begin(), said.end(), [](const diagnostic& d) { return d.id == 249; });
}

}  // namespace

plan draw_plan(std::uint64_t seed, std::uint64_t index, bool rounded) {
  plan p{.seed = seed, .index = index, .rounded = rounded, .model = {}};
  draw_model(p);
  draw_tuning(p);
  draw_layout(p);
  return p;
}

plan on_one_rank(const plan& p) {
  plan one = p;
  one.dims = {};
  one.recipe.recompute = {};
  const parallel_dims dims = resolve(p.dims);
  const int as_large = p.schedule.microbatches * dims.dp_replicate * dims.dp_shard;
  one.schedule = {.microbatches = p.rounded && as_large > 0 ? as_large : p.one_rank_microbatches};
  one.stage_layers.clear();
  if (trains_nothing(one)) {
    one.schedule.by = order::looped_bfs;
    one.schedule.inference = true;
  }
  return one;
}

plan_data make(const plan& p, const std::string& name) {
  plan_data out;
  constexpr bool s = false, r = true;
  if (try_sizes(p, name, out) || try_pattern<s, r, s>(p, name, out) || try_pattern<s, s>(p, name, out) ||
      try_pattern<s, s, s>(p, name, out) || try_pattern<s, r, r, s>(p, name, out) ||
      try_pattern<s, r, s, s>(p, name, out) || try_pattern<s, r, s, r, s>(p, name, out) ||
      try_pattern<s, s, r, s, s>(p, name, out) || try_pattern<s, r, r, r, s>(p, name, out) ||
      try_pattern<s, s, r, s>(p, name, out) || try_pattern<s, s, s, s>(p, name, out))
    return out;
  throw std::logic_error("a model whose layers stand in no pattern of plan.cpp");
}

}  // namespace fuzz
