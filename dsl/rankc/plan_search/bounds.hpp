// SPDX-License-Identifier: Apache-2.0
// Lower bounds of a choice's time and memory: for any schedule, for a placement of stages, and for a schedule
// before it is judged.
#pragma once
#include <rankc/plan_search/judge.hpp>
#include <rankc/plan_search/layers.hpp>
#include <rankc/plan_search/memory_share.hpp>
#include <rankc/plan_search/placed_memory.hpp>

#include <algorithm>

namespace rankc::plan_search {

/// A lower bound of a choice.
/// Units: seconds; bytes of the rank with the most memory.
struct bound {
  double step = 0;
  std::size_t bytes = 0;
};

template <class Model>
class choice_bounds {
 public:
  constexpr choice_bounds(const Model& model, const question& q) : model_(model), q_(q), layers_(model, q) {}

  /// The bound for any schedule, with stages of equal cost.
  constexpr bound least(const unscheduled& c) {
    const auto [alike, times] = layers_of(c);
    if (!alike) return {};
    const bound whole = least(c, *alike, times, false);
    if (c.dims.pp == 1) return whole;
    const bound halves = least(c, *alike, times, true);
    return {std::min(whole.step, halves.step), std::min(whole.bytes, halves.bytes)};
  }

  /// True if a choice breaks none of the rules that can be checked without its layers.
  constexpr bool is_legal_so_far(const choice& c) const {
    training recipe = q_.recipe;
    recipe.recompute = c.recompute;
    report out;
    rankc::detail::check_before_layers(out, model_, c.dims, c.schedule, recipe, q_.machines);
    return accepts(out);
  }

  /// The bound of the step for the stages of a choice's schedule, over all orders of actions. Backwards are
  /// whole, or in halves. Empty if the layers break a rule.
  constexpr std::optional<double> placed_step(const choice& c, const action_table& placement,
                                              bool in_halves) {
    const auto [alike, times] = layers_of(c);
    if (!alike) return {};
    const lowered_choice l = lower(c, placement, *alike, times, in_halves);
    const cost_model::detail::predictor steps(l.plan, *q_.gpu, l.setting, l.forms);
    return (1 - rounding) * steps.predict(steps.least_makespan(in_halves)).step;
  }
  /// The memory of the same choice. The choice must break no rule.
  constexpr placed_memory memory_of_placed(const choice& c, bool in_halves) {
    const auto [alike, times] = layers_of(c);
    const lowered_choice l = lower(c, detail::one_microbatch(c.schedule.placement(c.dims.pp), in_halves),
                                   *alike, times, in_halves);
    const plan_data& p = l.plan;
    placed_memory out;
    for (const lowering::rank_memory& m : lowering::memory_of(p, l.forms, l.setting, true))
      out.ranks.push_back({m.total(), 0, static_cast<std::size_t>(-1)});
    const std::vector<std::vector<int>> stages = forms_of_stages(p);
    for (int stage = 0; stage < p.actions.stages(); ++stage) {
      const std::size_t bytes = bytes_of_stage(l.forms, stages[static_cast<std::size_t>(stage)]);
      for (int rank = 0; rank < p.dims.pp; ++rank) {
        if (!p.actions.has_stage(rank, stage)) continue;
        placed_memory::rank& r = out.ranks[static_cast<std::size_t>(rank)];
        r.of_stage = std::min(r.of_stage, bytes);
        r.of_one += bytes;
      }
    }
    return out;
  }

  /// The step of a choice with its schedule and, if asked for, its memory without the buffers between stages.
  /// Empty if it breaks a rule.
  constexpr std::optional<bound> predicted(const choice& c, bool with_memory) {
    const auto [alike, times] = layers_of(c);
    if (!alike || !is_legal_so_far(c)) return {};
    action_table actions = actions_of(c.schedule, resolve(c.dims));
    const bool in_halves = detail::has_halves(actions);
    const lowered_choice l = lower(c, std::move(actions), *alike, times, in_halves);
    const cost_model::detail::predictor steps(l.plan, *q_.gpu, l.setting, l.forms);
    totals run = steps.scheduled();
    const bound out{(1 - rounding) * steps.predict(run.makespan).step,
                    with_memory ? rankc::detail::find_worst(l.plan, l.forms, l.setting, true).bytes : 0};
    if (!in_flight(c)) known_.push_back({c.schedule, c.dims.pp, std::move(run.peak_activations)});
    return out;
  }

  /// The microbatches in flight of a choice's schedule; null if no choice with this schedule was predicted
  /// before. The pointer is valid until the next prediction.
  /// Shapes: (ranks).
  constexpr const std::vector<int>* in_flight(const choice& c) const {
    for (const scheduled& s : known_)
      if (s.pp == c.dims.pp && s.schedule == c.schedule) return &s.in_flight;
    return nullptr;
  }

 private:
  static constexpr double rounding =
      1e-9;  // allows for the different order of sums in the bound and the prediction

  /// The data of a layer's form for time and memory.
  struct planned_form : cost_model::detail::timed_form, form_bytes {};
  /// A choice as a plan, with its forms lowered. The plan is valid until another choice with the same layers
  /// is lowered.
  struct lowered_choice {
    const plan_data& plan;
    lowering::layer_setting setting;
    std::vector<planned_form> forms{};
  };
  constexpr lowered_choice lower(const choice& c, action_table actions, alike_layers& alike, int times,
                                 bool in_halves) {
    plan_data& p = alike.plan;
    p.dims = resolve(c.dims);
    p.recipe.recompute = c.recompute;
    p.actions = std::move(actions);
    p.expected = {};  // for messages, which bounds do not count
    p.rows = rows_of(q_, c);
    p.blocks_of_stage = layers_.split(alike, p.dims, p.actions);
    lowered_choice l{p, alike.setting};
    l.setting.dims = p.dims;
    l.setting.splits_backward = in_halves;
    for (const layer_form& f : forms_of(p)) {
      lowered_form& lowered = layers_.lower(alike, f, c.recompute, in_halves);
      const lowered_form::repeated& form = layers_.repeat(lowered, times);
      l.forms.push_back({{form.takes, layers_.parameters_of(alike, static_cast<std::size_t>(f.kind), p.dims),
                          form.needs.x_bytes},
                         form.needs});
    }
    return l;
  }

  /// The bytes that a stage keeps of a microbatch from forward to backward.
  /// Shapes: layers (of the stage), indices of forms.
  constexpr std::size_t bytes_of_stage(const std::vector<planned_form>& forms,
                                       const std::vector<int>& layers) const {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const planned_form& form = forms[static_cast<std::size_t>(layers[i])];
      bytes +=
          lowering::aligned(form.saved_bytes) + (i + 1 < layers.size() ? lowering::aligned(form.y_bytes) : 0);
    }
    return bytes;
  }

  /// The layers of a choice. Without experts they are the layers of one sequence, and `times` is the number
  /// of sequences.
  struct layers_of_choice {
    alike_layers* alike = nullptr;
    int times = 1;
  };
  constexpr layers_of_choice layers_of(const unscheduled& c) {
    const int rows = rows_of(q_, c);
    unscheduled one_at_a_time = c;
    one_at_a_time.microbatches *= rows;
    if (experts_of(model_) <= 1 && rows > 1)
      if (alike_layers* const alike = layers_.find(one_at_a_time)) return {alike, rows};
    return {layers_.find(c), 1};
  }

  /// A lower bound of a step with whole backwards, or with backwards in halves.
  constexpr bound least(const unscheduled& c, alike_layers& alike, int times, bool in_halves) {
    using namespace cost_model::detail;
    const memory_share of(q_, alike.setting, c.dims);
    cost_model::spent work;
    held keeps;
    double all = 0, most = 0, most_beside = 0;
    const std::vector<int> repeated = count_recomputed(alike.plan, c.recompute);
    for (std::size_t k = 0; k < alike.plan.kinds.size(); ++k) {
      const layer_kind& kind = alike.plan.kinds[k];
      const parameter_elements& e = alike.elements[k];
      const int again = repeated[k];
      of.add(keeps, e, kind.count / static_cast<double>(c.dims.pp));
      for (const bool recomputes : {false, true}) {
        const int count = recomputes ? again : kind.count - again;
        if (count == 0) continue;
        lowered_form& form = layers_.lower(alike, {static_cast<int>(k), recomputes, true, kind.repeated},
                                           c.recompute, in_halves);
        const lowered_form::repeated& one = layers_.repeat(form, times);
        const double share = count / static_cast<double>(c.dims.pp),
                     each = of.kept(e) + static_cast<double>(one.needs.saved_bytes);
        const double beside =
            of.passing(e) + static_cast<double>(std::max(one.needs.forward_temp, one.needs.backward_temp));
        work += one.takes.all() * (share * c.microbatches);
        all += share * each;
        most = std::max(most, std::max(1.0, share) * each + beside);
        most_beside = std::max(most_beside, beside);
      }
    }
    const double over_links =
        beside(*q_.gpu, c.dims, q_.machines.ranks_per_node, q_.recipe, alike.setting, c.microbatches, keeps);
    const double step =
        alone(*q_.gpu, work, sweep(*q_.gpu, q_.recipe, alike.setting, keeps.trained), over_links).step;
    const double bytes = c.dims.pp == 1 ? all + most_beside : std::max(all, most);
    return {(1 - rounding) * step, static_cast<std::size_t>((1 - rounding) * bytes)};
  }

  const Model& model_;
  const question& q_;
  layer_cache<Model> layers_;
  struct scheduled {
    schedules::listed schedule;
    int pp;
    std::vector<int> in_flight;
  };
  std::vector<scheduled> known_;
};

}  // namespace rankc::plan_search
