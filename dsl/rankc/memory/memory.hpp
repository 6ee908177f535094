// SPDX-License-Identifier: Apache-2.0
// Counts the memory of the ranks of each pipeline coordinate: every region, table, place and workspace that
// the generator allocates.
#pragma once
#include <rankc/stages/expected.hpp>
#include <rankc/memory/gathered_places.hpp>
#include <rankc/lowering/layer.hpp>
#include <rankc/memory/optimizer_state.hpp>
#include <rankc/memory/pools.hpp>
#include <rankc/memory/opened.hpp>

#include <algorithm>
#include <string_view>

namespace rankc::lowering {

/// The memory of a rank. `beside` is the memory of CUDA and NCCL, 0 on the host. `between` is an upper bound
/// of the buffers between stages, if they are not counted.
/// Units: bytes.
struct rank_memory {
  std::size_t arena = 0, beside = 0, between = 0;
  constexpr std::size_t total() const { return arena + beside; }
};

namespace detail {

/// The layouts of a form's parameters: of the shards that a rank keeps, and of the gathered parameters.
struct form_layout {
  group_layout kept, gathered;
};

/// Counts the memory of the ranks of one pipeline coordinate.
/// Shapes: places as layers.
template <class Layers>
class rank_counter {
 public:
  constexpr rank_counter(const plan_data& plan, const Layers& layers, const std::vector<form_layout>& places,
                         const std::vector<std::vector<int>>& forms, const layer_setting& s,
                         const action_table& evaluation, bool gathers, int rank)
      : plan_(plan),
        layers_(layers),
        places_(places),
        forms_(forms),
        s_(s),
        rank_(rank),
        turns_(plan.dims, plan.actions, evaluation, rank, gathers),
        reads_(plan.inputs.size(), 0) {
    pools_.push_back({place_pool::between, 0});
    for (int stage = 0; stage < plan.actions.stages(); ++stage)
      if (plan.actions.has_stage(rank, stage)) add_stage(stage);
    for (stage_units& u : stages_)
      for (std::vector<int>* units : {&u.by_forward, &u.by_backward}) units->resize(pools_.size(), 0);
  }

  constexpr void count(const action_table& t, const action_map& m) {
    count_places(t, m, rank_, stages_, pools_);
  }

  /// Counts everything except the buffers between stages. Returns an upper bound of the number of these
  /// buffers.
  constexpr int count_all_between(const action_table& t) {
    rankc::lowering::detail::count_units(t, rank_, stages_, pools_);
    return static_cast<int>(stages_.size()) * t.microbatches * (t.inference ? 2 : 4);
  }
  constexpr std::size_t between() const { return pools_.front().unit; }

  constexpr std::size_t arena() const {
    const std::size_t real = s_.bytes(element_kind::real), wide = s_.bytes(element_kind::wide),
                      all = trained_ + frozen_;
    const optimizer_state kept = state_of(plan_.recipe, real, wide, s_.trains);
    // If there is a working copy, frozen weights are stored only in it.
    std::size_t bytes = aligned((kept.working_copy ? trained_ : all) * kept.weight);
    bytes += static_cast<std::size_t>(kept.moments) * aligned(trained_ * kept.moment);
    if (kept.working_copy) bytes += aligned(all * real);
    if (s_.trains) bytes += aligned(trained_ * wide);
    if (shards_weights(s_.dims)) {
      bytes += aligned(turns_.weights.elements() * real) +
               (s_.trains ? aligned(turns_.sums.elements() * wide) : 0);
      if (s_.trains && reshards() && (plan_.actions.microbatches > 1 || shares_))
        bytes += aligned(turns_.arriving.elements() * wide);
    }
    for (const rope_use& r : ropes_) bytes += aligned(static_cast<std::size_t>(r.positions) * r.dim * wide);
    for (std::size_t i = 0; i < reads_.size(); ++i)
      if (reads_[i]) bytes += aligned(bytes_in_step(plan_, plan_.inputs[i], real, wide));
    bytes += aligned(wide) * (s_.trains ? 2 : 1);  // the loss, the norm
    bytes += aligned(routers_ * static_cast<std::size_t>(plan_.actions.microbatches));
    for (const place_pool& p : pools_) bytes += p.unit * p.count;
    return bytes + static_cast<std::size_t>(chains_) * aligned(chain_bytes_) + aligned(work_) +
           aligned(work_beside());
  }
  constexpr const std::vector<parameter_name>& shared() const { return shared_; }

 private:
  constexpr bool reshards() const { return reshards_after_layer(s_.dims); }
  constexpr const auto& layer(int form) const { return layers_[static_cast<std::size_t>(form)]; }

  constexpr int pool(place_pool::kind what, std::size_t unit) {
    for (std::size_t p = 0; p < pools_.size(); ++p)
      if (pools_[p].what == what && pools_[p].unit == unit) return static_cast<int>(p);
    pools_.push_back({what, unit});
    return static_cast<int>(pools_.size()) - 1;
  }
  constexpr void take(std::vector<int>& units, place_pool::kind what, std::size_t bytes) {
    const auto p = static_cast<std::size_t>(pool(what, aligned(bytes)));
    if (units.size() <= p) units.resize(p + 1, 0);
    ++units[p];
  }

  constexpr void add_stage(int stage) {
    const std::vector<int>& forms = forms_[static_cast<std::size_t>(stage)];
    const auto &front = layer(forms.front()), &back = layer(forms.back());
    stage_units u{.stage = stage};
    u.keeps_x = front.uses(phase::backward_weight, space::x);
    u.keeps_dx = front.uses(phase::backward_weight, space::dx);
    u.keeps_dy = back.uses(phase::backward_weight, space::dy);
    pools_.front().unit = std::max({pools_.front().unit, aligned(front.x_bytes), aligned(back.y_bytes)});
    for (std::size_t i = 0; i < forms.size(); ++i) {
      const auto& l = layer(forms[i]);
      if (l.saved_bytes) take(u.by_forward, place_pool::saved, l.saved_bytes);
      if (l.halfway_bytes) take(u.by_backward, place_pool::halfway, l.halfway_bytes);
      if (i + 1 < forms.size()) {
        take(u.by_forward, place_pool::output, l.y_bytes);
        if (s_.splits_backward) take(u.by_backward, place_pool::output_gradient, l.y_bytes);
        chain_bytes_ = std::max(chain_bytes_, l.y_bytes);
      }
      add_layer(l, places_[static_cast<std::size_t>(forms[i])], stage);
    }
    if (s_.trains && !s_.splits_backward)
      chains_ = std::max(chains_, std::min(2, static_cast<int>(forms.size()) - 1));
    stages_.push_back(std::move(u));
  }

  constexpr void add_layer(const auto& l, const form_layout& places, int stage) {
    const auto& [kept, gathered] = places;
    const layer_turns::place turn = turns_.next(stage);
    for (int g = 0; g < n_groups; ++g) {
      const bool trained = g != static_cast<int>(group::frozen);
      (trained ? trained_ : frozen_) += kept.size[g];
      if (is_shared_out(static_cast<group>(g), s_.dims)) turns_.take(turn, gathered.size[g], trained);
    }
    for (const layer_parameter& p : l.parameters) {
      if (p.trainable && p.shards > 1) turns_.arrive(aligned_elements(p.shard()));
      if (!p.shared) continue;
      const bool is_new = std::find(shared_.begin(), shared_.end(), p.name) == shared_.end();
      if (is_new || reshards()) turns_.take(turns_.shared(), aligned_elements(p.stored()), p.trainable);
      shares_ |= !is_new && p.trainable;
      if (!is_new) continue;
      shared_.push_back(p.name);
      (p.trainable ? trained_ : frozen_) += aligned_elements(p.shard());
    }
    for (const rope_use& r : l.ropes)
      if (std::find(ropes_.begin(), ropes_.end(), r) == ropes_.end()) ropes_.push_back(r);
    for (std::size_t i = 0; i < reads_.size(); ++i)
      if (l.reads_input(phase::forward, static_cast<int>(i))) reads_[i] = 1;
    work_ = std::max({work_, l.forward_temp, l.backward_temp});
    routers_ = std::max(routers_, l.routers_bytes);
  }

  /// The workspace of actions that overlap others. Only a step has such actions.
  constexpr std::size_t work_beside() const {
    std::size_t bytes = 0;
    if (!s_.trains) return bytes;
    const action_table& t = plan_.actions;
    for (int i = t.begin[rank_]; i < t.begin[rank_ + 1]; ++i) {
      if (!t.actions[i].overlaps_next) continue;
      for (int f : forms_[static_cast<std::size_t>(t.actions[i].stage)])
        bytes = std::max(
            bytes, t.actions[i].kind == action_kind::F ? layer(f).forward_temp : layer(f).backward_temp);
    }
    return bytes;
  }

  const plan_data& plan_;
  const Layers& layers_;
  const std::vector<form_layout>& places_;
  const std::vector<std::vector<int>>& forms_;
  const layer_setting& s_;
  const int rank_;
  std::vector<stage_units> stages_;
  std::vector<place_pool> pools_;
  std::vector<rope_use> ropes_;
  std::vector<parameter_name> shared_;  // names of tensors that layers share
  layer_turns turns_;
  std::size_t trained_ = 0, frozen_ = 0;  // elements that the rank keeps
  std::size_t chain_bytes_ = 0, work_ = 0, routers_ = 0;
  int chains_ = 0;
  std::vector<char> reads_;  // by input of the plan: 1 if the rank reads it
  bool shares_ = false;
};

/// True if another pipeline coordinate holds parameters of this one.
constexpr bool ties(const plan_data& plan, const auto& counters, std::size_t rank) {
  if (plan.actions.bidirectional()) return true;
  for (std::size_t other = 0; other < counters.size(); ++other)
    for (const parameter_name& name : counters[rank].shared())
      if (const auto& theirs = counters[other].shared();
          other != rank && std::find(theirs.begin(), theirs.end(), name) != theirs.end())
        return true;
  return false;
}

}  // namespace detail

/// The memory of the ranks of each pipeline coordinate for a step and an evaluation. The plan must break no
/// rule except RC401. Counting the buffers between stages needs the times of messages and takes most of the
/// compile time. With `bounds` they are not counted, and `between` is an upper bound of them.
/// Shapes: `layers`: each of the plan's forms, lowered.
constexpr std::vector<rank_memory> memory_of(const plan_data& plan, const auto& layers,
                                             const layer_setting& s, bool bounds = false) {
  const std::vector<std::vector<int>> forms = forms_of_stages(plan);
  std::vector<detail::rank_counter<std::decay_t<decltype(layers)>>> counters;
  const action_table evaluation = evaluation_of(plan.actions, plan.dims);
  const bool gathers = says_unshard(plan.actions);
  std::vector<detail::form_layout> places;
  for (const auto& l : layers)
    places.push_back({lay_out(l.parameters, &layer_parameter::shard), lay_out(l.parameters)});
  for (int r = 0; r < plan.dims.pp; ++r)
    counters.emplace_back(plan, layers, places, forms, s, evaluation, gathers, r);
  const auto count = [&](const action_table& t) {
    const action_map m(t, place_messages(t, plan.expected));
    for (int r = 0; r < plan.dims.pp; ++r) counters[static_cast<std::size_t>(r)].count(t, m);
  };
  if (!bounds && s.trains) count(plan.actions);
  if (!bounds) count(evaluation);
  const action_table& most = s.trains ? plan.actions : evaluation;
  const layout groups(plan.dims);
  std::vector<rank_memory> out;
  for (std::size_t r = 0; r < counters.size(); ++r) {
    rank_memory& m = out.emplace_back();
    if (bounds)
      m.between = counters[r].between() * static_cast<std::size_t>(counters[r].count_all_between(most));
    m.arena = counters[r].arena();
    if (s.to == target::cuda)
      m.beside = cuda::bytes_beside_arena(
          opened_by(groups, plan.actions, static_cast<int>(r), detail::ties(plan, counters, r),
                    rounds_reductions(plan.recipe, plan.dims, s.bytes(element_kind::real),
                                      s.bytes(element_kind::wide), s.trains),
                    sums_over_batch(plan.kinds), communicates_beside_rings(plan.kinds, plan.dims)),
          cuda::edges_by::nccl, plan.dims.world);
  }
  return out;
}

/// Lowers each form of a plan's layers once.
constexpr std::vector<layer_program> lower_layers(const plan_data& plan, const layer_setting& s) {
  std::vector<layer_program> all;
  for (const layer_form& f : forms_of(plan)) {
    const auto kind = static_cast<std::size_t>(f.kind);
    all.push_back(
        lower_layer(plan.kinds[kind].ops, local_parameters(plan.kinds, kind, plan.dims), of_form(s, f)));
  }
  return all;
}

}  // namespace rankc::lowering
