// SPDX-License-Identifier: Apache-2.0
// The fastest plan that fits: choices in order of what they take at least, which is looked at more closely only of those that
// could still be the first. Source: best-first search, Hart, Nilsson and Raphael 1968.
#pragma once
#include <rankc/planner/judge.hpp>
#include <rankc/planner/layers.hpp>

#include <algorithm>

namespace rankc::planner {

/// How many choices a search looked at, and how closely.
struct looked_at {
  int all = 0, placed = 0, predicted = 0, judged = 0;
};

/// The search for the fastest plan of a model that fits, of equally fast ones the smallest.
template <class Model>
class fastest_search {
 public:
  constexpr fastest_search(const Model& model, const question& q) : model_(model), q_(q), layers_(model, q) {}

  constexpr std::optional<judged> find() {
    for (const unscheduled& c : unscheduled_choices(q_, experts_of(model_))) {
      ++counts.all;
      if (const auto least = least_of(c)) push({*least, known::least, {c}});
    }
    constexpr double rounding = 1e-9;  // what is known of a choice is summed in another order than its prediction
    std::optional<judged> best;
    while (!open_.empty() && !(best && best->time.step < (1 - rounding) * open_.front().step)) {
      std::pop_heap(open_.begin(), open_.end());
      const candidate next = open_.back();
      open_.pop_back();
      if (next.by == known::least) add_schedules(next.of);
      else if (next.by == known::placed) add_predicted(next.of);
      else if (const auto j = judge(next.of); j && j->fits && (!best || j->is_before(*best))) best = j;
    }
    return best;
  }

  looked_at counts;

 private:
  /// What is known of a choice: the least that its layers take, that they take on its stages, or its step.
  enum class known : unsigned char { least, placed, step };
  /// Units: seconds, at least.
  struct candidate {
    double step;
    known by;
    choice of;
    constexpr bool operator<(const candidate& other) const { return step > other.step; }  // of a heap the first is the fastest
  };
  constexpr void push(const candidate& c) {
    open_.push_back(c);
    std::push_heap(open_.begin(), open_.end());
  }

  /// Of a plan what its prediction depends on.
  struct sketch {
    parallel_dims dims{};
    training recipe{};
    cluster machines{};
    action_table actions{};
    std::span<const rankc::detail::traced_kind> kinds{};
    std::vector<int> blocks_of_stage{};
  };
  constexpr training recipe_of(const unscheduled& c) const {
    training recipe = q_.recipe;
    recipe.recompute = c.recompute;
    return recipe;
  }
  constexpr bool is_legal_so_far(const choice& c) const {
    report out;
    rankc::detail::check_before_layers(out, model_, c.dims, c.schedule, recipe_of(c), q_.machines);
    return accepts(out);
  }
  constexpr std::optional<judged> judge(const choice& c) {
    ++counts.judged;
    report out;
    return planner::judge(model_, q_, c, out);
  }

  /// The layers of a choice; where sequences do not ask for experts, of one at a time, and how many there are.
  struct layers_of_choice {
    alike_layers* alike = nullptr;
    int times = 1;
  };
  constexpr layers_of_choice layers_of(choice c) {
    const int rows = rows_of(q_, c), times = experts_of(model_) > 1 ? 1 : rows;
    c.microbatches *= times;
    c.schedule = {schedules::one_f_one_b::name, c.microbatches, 1};
    return {layers_.find(c), times};
  }

  /// What a step takes at least by any schedule, with stages that take the same; nothing where its weights alone do not fit.
  constexpr std::optional<double> least_of(const unscheduled& c) {
    const auto [alike, times] = layers_of({c});
    if (!alike) return 0;
    const cost_model::detail::held h = held_on_average(c, *alike);
    if (!fit(q_.machines, static_cast<std::size_t>(h.trained * state_bytes(alike->setting)))) return {};
    const double whole = least_of(c, *alike, times, h, false);
    return c.dims.pp == 1 ? whole : std::min(whole, least_of(c, *alike, times, h, true));
  }
  constexpr double least_of(const unscheduled& c, alike_layers& alike, int times, const cost_model::detail::held& h, bool in_halves) {
    using namespace cost_model::detail;
    cost_model::spent work;
    for (std::size_t k = 0; k < alike.kinds.size(); ++k) {
      const auto& kind = alike.kinds[k];
      lowered_form& form = layers_.lower(alike, {static_cast<int>(k), kind.repeated && c.recompute.is_of(0), true}, c.recompute, in_halves);
      work += layers_.time(form, times).all() * (kind.count / static_cast<double>(c.dims.pp) * c.microbatches);
    }
    return alone(*q_.gpu, work, sweep(*q_.gpu, q_.recipe, alike.setting, h.trained),
                 beside(*q_.gpu, c.dims, q_.machines.ranks_per_node, q_.recipe, alike.setting, c.microbatches, h)).step;
  }
  /// Parameters of a rank, on average.
  constexpr cost_model::detail::held held_on_average(const unscheduled& c, const alike_layers& alike) const {
    const double shards = weight_shards(c.dims), expert_shards = expert_weight_shards(c.dims);
    cost_model::detail::held h;
    for (std::size_t k = 0; k < alike.kinds.size(); ++k) {
      const double layers = alike.kinds[k].count / static_cast<double>(c.dims.pp);
      const parameter_elements& e = alike.elements[k];
      h.trained += layers * (e.trained / shards + e.trained_of_experts / expert_shards);
      h.gathered += layers * ((shards > 1 ? e.all : 0) + (expert_shards > 1 ? e.all_of_experts : 0));
      if (weight_replicas(c.dims) > 1) h.summed += layers * e.trained / shards;
    }
    return h;
  }

  /// Of a weight, what the optimizer keeps of it, and its gradient.
  constexpr double state_bytes(const program::layer_setting& s) const {
    const std::size_t real = s.bytes(program::element_kind::real), wide = s.bytes(program::element_kind::wide);
    const program::optimizer_state kept = program::state_of(q_.recipe, real, wide, true);
    return static_cast<double>(kept.weight + static_cast<std::size_t>(kept.moments) * kept.moment + (kept.working_copy ? real : 0) + wide);
  }

  /// The plan of a choice on stages that some schedule places.
  constexpr sketch sketch_of(const choice& c, action_table actions, alike_layers& alike) const {
    sketch p{.dims = resolve(c.dims), .recipe = recipe_of(c), .machines = q_.machines, .actions = std::move(actions), .kinds = alike.kinds};
    p.blocks_of_stage = layers_.split(alike, p.dims, p.actions);
    return p;
  }
  constexpr std::vector<cost_model::detail::timed_form> time_forms(const sketch& p, alike_layers& alike, int times, bool in_halves) const {
    std::vector<cost_model::detail::timed_form> forms;
    for (const layer_form& f : forms_of(p)) {
      lowered_form& lowered = layers_.lower(alike, f, p.recipe.recompute, in_halves);
      forms.push_back({layers_.time(lowered, times), layers_.parameters_of(alike, static_cast<std::size_t>(f.kind), p.dims),
                       lowered.program.x_bytes * static_cast<std::size_t>(times), lowered.program.saved_bytes * static_cast<std::size_t>(times)});
    }
    return forms;
  }

  /// Add a choice's schedules, by what no order of actions on their stages is faster than.
  constexpr void add_schedules(const choice& given) {
    struct placement {
      action_table of;
      bool in_halves;
      std::optional<double> least;  // none: does not fit
    };
    std::vector<placement> seen;
    for (const schedules::listed& s : schedules_of(given.dims.pp, given.microbatches)) {
      choice c = given;
      c.schedule = s;
      const action_table placed = s.placement(given.dims.pp);
      const auto like = [&](const placement& p) {
        return p.in_halves == s.in_halves() && p.of.rank_of_stage == placed.rank_of_stage &&
               p.of.reversed_rank_of_stage == placed.reversed_rank_of_stage;
      };
      auto found = std::find_if(seen.begin(), seen.end(), like);
      if (found == seen.end()) {
        const auto [alike, times] = layers_of(c);
        if (!alike || !is_legal_so_far(c)) continue;
        ++counts.placed;
        found = seen.insert(seen.end(), {placed, s.in_halves(), least_of_placed(c, placed, *alike, times)});
      }
      if (found->least) push({*found->least, known::placed, c});
    }
  }
  constexpr std::optional<double> least_of_placed(const choice& c, const action_table& placed, alike_layers& alike, int times) {
    const bool in_halves = c.schedule.in_halves();
    const sketch p = sketch_of(c, placed, alike);
    const std::vector<cost_model::detail::timed_form> forms = time_forms(p, alike, times, in_halves);
    const cost_model::detail::predictor steps(p, *q_.gpu, alike.setting, forms);
    if (!fits_at_least(p, alike.setting, steps, forms, {})) return {};
    return steps.predict(steps.least_makespan(in_halves)).step;
  }

  /// Add a choice by its step; none where what its ranks keep of forward does not fit.
  constexpr void add_predicted(const choice& c) {
    if (!is_legal_so_far(c)) return;
    action_table actions = actions_of(c.schedule, resolve(c.dims));
    bool in_halves = false;
    for (const action& a : actions.actions) in_halves |= a.kind == action_kind::I || a.kind == action_kind::W;
    const auto [alike, times] = layers_of(c);
    if (!alike) return;
    ++counts.predicted;
    const sketch p = sketch_of(c, std::move(actions), *alike);
    const std::vector<cost_model::detail::timed_form> forms = time_forms(p, *alike, times, in_halves);
    const cost_model::detail::predictor steps(p, *q_.gpu, alike->setting, forms);
    const totals run = steps.scheduled();
    if (fits_at_least(p, alike->setting, steps, forms, run.peak_activations)) push({steps.predict(run.makespan).step, known::step, c});
  }

  /// Whether what ranks need at least fits: what is kept of weights, and of microbatches in flight.
  /// Shapes: in_flight (ranks), of one stage each; empty: one of all its stages.
  constexpr bool fits_at_least(const sketch& p, const program::layer_setting& s, const auto& steps,
                               const std::vector<cost_model::detail::timed_form>& forms, const std::vector<int>& in_flight) const {
    const double real = static_cast<double>(s.bytes(program::element_kind::real)), wide = static_cast<double>(s.bytes(program::element_kind::wide));
    const int shards = std::min(weight_shards(p.dims), expert_weight_shards(p.dims));
    std::vector<double> saved;  // of each stage
    for (const std::vector<int>& stage : steps.forms()) {
      saved.push_back(0);
      for (int f : stage) saved.back() += static_cast<double>(forms[static_cast<std::size_t>(f)].saved);
    }
    for (int rank = 0; rank < p.dims.pp; ++rank) {
      const cost_model::detail::held& h = steps.held_by(rank);
      double least = -1, all = 0;
      for (std::size_t stage = 0; stage < saved.size(); ++stage) {
        if (!p.actions.has_stage(rank, static_cast<int>(stage))) continue;
        all += saved[stage];
        if (least < 0 || saved[stage] < least) least = saved[stage];
      }
      double bytes = h.trained * state_bytes(s) + (in_flight.empty() ? all : in_flight[static_cast<std::size_t>(rank)] * least);
      if (!reshards_after_layer(p.dims)) bytes += h.gathered * real + h.trained * (shards > 1 ? shards : 0) * wide;
      if (!fit(q_.machines, static_cast<std::size_t>(bytes))) return false;
    }
    return true;
  }

  const Model& model_;
  const question& q_;
  layer_cache<Model> layers_;
  std::vector<candidate> open_;
};

}  // namespace rankc::planner
