// SPDX-License-Identifier: Apache-2.0
// The time of a step of a plan: the work of its ranks, and its schedule.
#pragma once
#include <rankc/cost_model/rank_time.hpp>
#include <rankc/schedule/timing.hpp>

#include <algorithm>
#include <vector>

namespace rankc::cost_model {

namespace detail {

/// Predicts a step of a plan on GPUs of one kind.
/// Shapes: `forms` as in forms_of.
template <class Form>
class predictor {
 public:
  constexpr predictor(const plan_data& p, const gpu_speed& g, const lowering::layer_setting& s,
                      const std::vector<Form>& layers, const framework& f = rankc_itself)
      : p_(p), g_(g), f_(f), s_(s), layers_(layers), forms_(forms_of_stages(p)) {
    for (const std::vector<int>& forms : forms_) {
      stages_.emplace_back();
      for (int f : forms) {
        const stage_spent& one = layers_[static_cast<std::size_t>(f)].takes;
        stages_.back().forward += one.forward;
        stages_.back().input += one.input;
        stages_.back().weight += one.weight;
        stages_.back().again += one.again;
      }
    }
    if (!f_.sends_beside) add_messages();
    add_ranks();
  }

  /// The totals of the schedule, with the predicted times of its actions.
  constexpr totals scheduled() const { return total(p_.actions, action_costs()); }
  /// The prediction for a schedule with this makespan.
  /// Units: seconds.
  constexpr step_prediction predict(double makespan) const {
    step_prediction out;
    // slowed: by power, on the rank that it limits most; busy: of the rank with the most work
    double slowed = 1, busy = 0;
    for (const pipeline_rank& r : ranks_) {
      slowed = std::max(slowed, 1 + r.alone.limited / (r.alone.step - r.alone.limited));
      if (r.alone.step > out.step) {
        out = r.alone;
        busy = r.busy;
      }
    }
    out.bubble = std::max(0.0, slowed * (makespan - busy));
    out.step += out.bubble;
    return out;
  }

  /// A lower bound of the makespan for any order of the actions. A rank cannot begin before a microbatch can
  /// have reached it. If backward is not split, its last gradient must then reach the first stage.
  constexpr double least_makespan(bool in_halves) const {
    const double send = in_flight_time();
    double longest = 0;
    for (int rank = 0; rank < p_.dims.pp; ++rank) {
      double before = 0;
      for (int stage = 0; !p_.actions.has_stage(rank, stage); ++stage) {
        const stage_spent& takes = stages_[static_cast<std::size_t>(stage)];
        before += takes.forward.seconds() +
                  (in_halves ? 0 : takes.input.seconds() + takes.weight.seconds() + takes.again.seconds());
        if (sends(static_cast<std::size_t>(stage))) before += in_halves ? send : 2 * send;
      }
      longest = std::max(longest, before + ranks_[static_cast<std::size_t>(rank)].busy);
    }
    return longest;
  }

  /// The time of each stage.
  /// Shapes: (stages).
  constexpr const std::vector<stage_spent>& stages() const { return stages_; }

 private:
  struct pipeline_rank {
    double busy = 0;  // in the schedule
    step_prediction alone;
  };
  constexpr void add_ranks() {
    std::vector<held> own;  // parameters of each form, except those that layers share
    for (const Form& l : layers_) {
      held& h = own.emplace_back();
      for (const lowering::layer_parameter& w : l.parameters)
        if (!w.shared) h += w;
    }
    for (int rank = 0; rank < p_.dims.pp; ++rank) {
      const held keeps = held_on(rank, own);
      const spent work = work_of(rank);
      ranks_.push_back({work.seconds(), alone(g_, work, sweep(g_, p_.recipe, s_, keeps.trained, f_),
                                              beside(g_, p_.dims, p_.machines.ranks_per_node, p_.recipe, s_,
                                                     p_.actions.microbatches, keeps),
                                              f_)});
    }
  }
  constexpr held held_on(int rank, const std::vector<held>& own) const {
    held h;
    std::vector<parameter_name> seen;
    for (int stage = 0; stage < p_.actions.stages(); ++stage) {
      if (!p_.actions.has_stage(rank, stage)) continue;
      for (int f : forms_[static_cast<std::size_t>(stage)]) {
        h += own[static_cast<std::size_t>(f)];
        for (const lowering::layer_parameter& w : layers_[static_cast<std::size_t>(f)].parameters)
          if (w.shared && std::find(seen.begin(), seen.end(), w.name) == seen.end()) {
            seen.push_back(w.name);
            h += w;
          }
      }
    }
    return h;
  }

  /// The costs of the actions: stages differ by a factor in forward and by an additional time in backward.
  constexpr costs action_costs() const {
    costs c{.forward = 1, .input_grad = 1, .weight_grad = 1};
    double forward = 0, weight = 0;
    for (const stage_spent& s : stages_) {
      forward += s.forward.seconds();
      weight += s.weight.seconds();
    }
    c.weight_grad = forward > 0 ? weight / forward : 0;
    for (const stage_spent& s : stages_) {
      const double f = s.forward.seconds(),
                   whole = s.input.seconds() + s.weight.seconds() + s.again.seconds();
      c.stage.push_back(f);
      c.again.push_back(whole - f * (c.input_grad + c.weight_grad));
    }
    c.send = in_flight_time();
    return c;
  }

  /// True if the stage's result is sent to another rank.
  constexpr bool sends(std::size_t stage) const {
    return p_.actions.rank_of_stage[stage] != p_.actions.rank_of_stage[stage + 1];
  }
  /// Adds the messages that their sender waits for.
  constexpr void add_messages() {
    const double send = sending_time();
    for (std::size_t stage = 0; stage + 1 < stages_.size(); ++stage)
      if (sends(stage)) {
        stages_[stage].forward.links += send;
        stages_[stage + 1].input.links += send;
      }
  }
  /// The time of a message while its sender continues.
  constexpr double in_flight_time() const { return f_.sends_beside ? sending_time() : 0; }
  constexpr double sending_time() const {
    const double bytes = bytes_between_stages();
    if (!f_.scatters_messages || region_ranks(p_.dims) == 1 || p_.dims.sequence_parallel)
      return message_time(g_, across_stages(), bytes);
    const span gather = span_of(layout(p_.dims), region_axis, p_.machines.ranks_per_node);
    return message_time(g_, across_stages(), bytes / region_ranks(p_.dims)) +
           gathering_time(g_, gather, bytes, waits_for(f_));
  }

  constexpr span across_stages() const {
    return p_.dims.pp > 1 ? span_of(2, p_.dims.world / p_.dims.pp, p_.machines.ranks_per_node) : span{};
  }
  constexpr double bytes_between_stages() const {
    return static_cast<double>(layers_[static_cast<std::size_t>(forms_.back().back())].boundary);
  }

  /// The work of a rank on its stages, in both directions of a bidirectional schedule.
  constexpr spent work_of(int rank) const {
    const action_table& t = p_.actions;
    const int down = t.bidirectional() ? t.reversed_from : t.microbatches;
    spent work;
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      int microbatches = t.rank_of_stage[stage] == rank ? down : 0;
      if (t.bidirectional() && t.reversed_rank_of_stage[stage] == rank) microbatches += t.microbatches - down;
      if (microbatches > 0) work += stages_[stage].all() * microbatches;
    }
    return work;
  }

  const plan_data& p_;
  const gpu_speed& g_;
  const framework& f_;
  const lowering::layer_setting& s_;
  const std::vector<Form>& layers_;
  std::vector<std::vector<int>> forms_;
  std::vector<stage_spent> stages_;
  std::vector<pipeline_rank> ranks_;
};

constexpr std::vector<timed_form> time_forms(const plan_data& plan, const gpu_speed& g,
                                             const lowering::layer_setting& s,
                                             const std::vector<lowering::layer_program>& layers,
                                             const framework& f) {
  std::vector<timed_form> forms;
  for (const lowering::layer_program& l : layers)
    forms.push_back({phases_of(g, l, s, plan.machines.ranks_per_node, f), l.parameters, l.x_bytes});
  return forms;
}
}  // namespace detail

/// Predicts a step on GPUs of a kind. The plan must break no rule. `layers` are its forms, lowered for CUDA.
constexpr step_prediction predict_step(const plan_data& plan, const gpu_speed& g,
                                       const lowering::layer_setting& s,
                                       const std::vector<lowering::layer_program>& layers,
                                       const framework& f = rankc_itself) {
  const std::vector<detail::timed_form> forms = detail::time_forms(plan, g, s, layers, f);
  const detail::predictor steps(plan, g, s, forms, f);
  return steps.predict(steps.scheduled().makespan);
}
constexpr step_prediction predict_step(const plan_data& plan, const gpu_speed& g,
                                       const framework& f = rankc_itself) {
  const lowering::layer_setting s = lowering::setting_of(plan, plan.recipe.precision, lowering::target::cuda);
  return predict_step(plan, g, s, lowering::lower_layers(plan, s), f);
}

/// The time of a stage's actions for one microbatch, if power is no limit. Backward includes recomputation.
/// Units: seconds.
struct stage_times {
  double forward, input, weight;  // a whole backward is `input`
};
/// Predicts the time of every stage's actions.
/// Shapes: the result (stages).
constexpr std::vector<stage_times> predict_stages(const plan_data& plan, const gpu_speed& g,
                                                  const lowering::layer_setting& s,
                                                  const std::vector<lowering::layer_program>& layers) {
  const std::vector<detail::timed_form> forms = detail::time_forms(plan, g, s, layers, rankc_itself);
  std::vector<stage_times> all;
  const detail::predictor steps(plan, g, s, forms, rankc_itself);
  for (const detail::stage_spent& of : steps.stages())
    all.push_back({of.forward.seconds(), of.input.seconds() + of.again.seconds(), of.weight.seconds()});
  return all;
}

}  // namespace rankc::cost_model
