// SPDX-License-Identifier: Apache-2.0
// What a step of a plan takes: the kernels of its lowered layers, what its ranks send each other, its schedule, its optimizer,
// and the power of its GPUs.
#pragma once
#include <rankc/cost_model/layer_time.hpp>
#include <rankc/program/memory.hpp>
#include <rankc/schedule/timing.hpp>

#include <algorithm>
#include <vector>

namespace rankc::cost_model {

/// Units: seconds.
struct step_prediction {
  double step = 0;
  double products = 0, attention = 0, passes = 0, optimizer = 0, links = 0, bubble = 0;  // of the rank that has most to do
  double limited = 0;  // what power makes of these more
  /// All of these but the start of a step.
  constexpr double sum() const { return products + attention + passes + optimizer + links + bubble + limited; }
};

namespace detail {

/// What each phase of a stage takes.
struct stage_spent {
  spent forward, input, weight, again;  // a whole backward is `input`
  constexpr spent all() const {
    spent s = forward;
    s += input;
    s += weight;
    s += again;
    return s;
  }
};

/// Parameters of a pipeline rank, in elements: that it keeps and trains; that it gathers, and whose gradients it sums.
struct held {
  double trained = 0, gathered = 0, summed = 0;
};

/// Predicts a step of a plan on GPUs of one kind.
template <class Plan>
class predictor {
 public:
  constexpr predictor(const Plan& p, const gpu_speed& g, const program::layer_setting& s, const std::vector<program::layer_program>& layers)
      : p_(p), g_(g), s_(s), layers_(layers), forms_(forms_of_stages(p)) {
    for (const program::layer_program& l : layers_) of_form_.push_back(phases_of(l));
    for (const std::vector<int>& forms : forms_) {
      stages_.emplace_back();
      for (int f : forms) {
        const stage_spent& one = of_form_[static_cast<std::size_t>(f)];
        stages_.back().forward += one.forward, stages_.back().input += one.input;
        stages_.back().weight += one.weight, stages_.back().again += one.again;
      }
    }
  }

  constexpr step_prediction predict() const {
    step_prediction out;
    double slowed = 1, busy = 0;  // by power, of the rank that it limits most; of the one that has most to do
    for (int r = 0; r < p_.dims.pp; ++r) {
      const spent work = work_of(r);
      const step_prediction one = of_rank(r, work);
      slowed = std::max(slowed, 1 + one.limited / (one.step - one.limited));
      if (one.step > out.step) out = one, busy = work.seconds();
    }
    out.bubble = std::max(0.0, slowed * (total(p_.actions, action_costs()).makespan - busy));
    out.step += out.bubble;
    return out;
  }

 private:
  constexpr stage_spent phases_of(const program::layer_program& l) const {
    using program::phase;
    const auto takes = [&](phase does) { return time_of(g_, l, s_, does, p_.machines.ranks_per_node); };
    stage_spent one{.forward = takes(phase::forward), .input = {}, .weight = {}, .again = takes(phase::recompute)};
    one.input = takes(l.in_halves ? phase::backward_input : phase::backward);
    if (l.in_halves) one.weight = takes(phase::backward_weight);
    return one;
  }

  /// Of each action: stages differ by a factor in forward, and by what they take besides in backward.
  constexpr costs action_costs() const {
    costs c{.forward = 1, .input_grad = 1, .weight_grad = 1};
    double forward = 0, weight = 0;
    for (const stage_spent& s : stages_) forward += s.forward.seconds(), weight += s.weight.seconds();
    c.weight_grad = forward > 0 ? weight / forward : 0;
    for (const stage_spent& s : stages_) {
      const double f = s.forward.seconds(), whole = s.input.seconds() + s.weight.seconds() + s.again.seconds();
      c.stage.push_back(f);
      c.again.push_back(whole - f * (c.input_grad + c.weight_grad));
    }
    c.send = message_time(g_, across_stages(), bytes_between_stages());
    return c;
  }

  constexpr span across_stages() const {
    return p_.dims.pp > 1 ? span_of(2, p_.dims.world / p_.dims.pp, p_.machines.ranks_per_node) : span{};
  }
  constexpr double bytes_between_stages() const {
    return static_cast<double>(layers_[static_cast<std::size_t>(forms_.back().back())].x_bytes);
  }

  constexpr held held_by(int rank) const {
    held h;
    std::vector<parameter_name> seen;
    for (int stage = 0; stage < p_.actions.stages(); ++stage)
      for (std::size_t i = 0; p_.actions.has_stage(rank, stage) && i < forms_[static_cast<std::size_t>(stage)].size(); ++i)
        for (const program::layer_parameter& w : layers_[static_cast<std::size_t>(forms_[static_cast<std::size_t>(stage)][i])].parameters) {
          if (w.shared && std::find(seen.begin(), seen.end(), w.name) != seen.end()) continue;
          if (w.shared) seen.push_back(w.name);
          if (w.trainable) h.trained += static_cast<double>(w.shard());
          if (w.shards > 1) h.gathered += static_cast<double>(w.stored());
          if (w.trainable && w.sum_over_dp) h.summed += static_cast<double>(w.shard());
        }
    return h;
  }

  /// The optimizer and the norm, which pass over all that is trained.
  constexpr effort sweep(const held& h) const {
    if (!s_.trains) return {};
    const auto real = static_cast<double>(s_.bytes(program::element_kind::real)), wide = static_cast<double>(s_.bytes(program::element_kind::wide));
    const program::optimizer_state kept = program::state_of(p_.recipe, s_.bytes(program::element_kind::real), s_.bytes(program::element_kind::wide), s_.trains);
    const double each = 2.0 * static_cast<double>(kept.weight) + 2.0 * kept.moments * static_cast<double>(kept.moment) + wide + (kept.working_copy ? real : 0);
    const double bytes = h.trained * (each + wide);
    return {g_.sweeps.time(bytes), bytes * g_.joules_of_byte};
  }

  /// What goes over links beside computation: weights that are gathered, gradients that are summed.
  constexpr double beside(const held& h) const {
    const auto real = static_cast<double>(s_.bytes(program::element_kind::real)), wide = static_cast<double>(s_.bytes(program::element_kind::wide));
    const double sum = p_.recipe.reductions == bf16 ? real : wide;
    const span shards = span_of(weight_shards(p_.dims), stride_of_data(p_.dims), p_.machines.ranks_per_node),
               replicas = span_of(weight_replicas(p_.dims), stride_of_data(p_.dims) * weight_shards(p_.dims), p_.machines.ranks_per_node);
    const bool again = reshards_after_layer(p_.dims);
    const double times = again ? p_.actions.microbatches : 1;
    return gathering_time(g_, shards, h.gathered * real) * times * (again ? 2 : 1) + gathering_time(g_, shards, h.gathered * sum) * times +
           reducing_time(g_, replicas, h.summed * sum);
  }

  /// What a rank does of its stages, of both directions where there are two.
  constexpr spent work_of(int rank) const {
    const action_table& t = p_.actions;
    const int down = t.bidirectional() ? t.reversed_from : t.microbatches;
    spent work;
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      int microbatches = t.rank_of_stage[stage] == rank ? down : 0;
      if (t.bidirectional() && t.reversed_rank_of_stage[stage] == rank) microbatches += t.microbatches - down;
      work += stages_[stage].all() * microbatches;
    }
    return work;
  }

  /// Without waiting for other ranks.
  constexpr step_prediction of_rank(int rank, const spent& work) const {
    const held h = held_by(rank);
    const effort swept = sweep(h);
    const double over_links = beside(h);
    // What computation is too short to hide is waited for.
    const double waits = over_links * g_.beside + std::max(0.0, over_links - work.seconds());
    step_prediction out{.products = work.products.seconds, .attention = work.attention.seconds, .passes = work.passes.seconds,
                        .optimizer = swept.seconds, .links = work.links + waits};
    out.step = work.seconds() + swept.seconds + waits + g_.step_start;
    const double joules = work.computing().joules + swept.joules + (work.links + over_links) * g_.link_power;
    out.limited = std::max(0.0, joules / (g_.power - g_.rest) - out.step);
    out.step += out.limited;
    return out;
  }

  const Plan& p_;
  const gpu_speed& g_;
  const program::layer_setting& s_;
  const std::vector<program::layer_program>& layers_;
  std::vector<std::vector<int>> forms_;
  std::vector<stage_spent> of_form_, stages_;
};

}  // namespace detail

/// What a step takes on GPUs of a kind. The plan breaks no rule; `layers` are its forms, lowered for CUDA.
constexpr step_prediction predict_step(const auto& plan, const gpu_speed& g, const program::layer_setting& s,
                                       const std::vector<program::layer_program>& layers) {
  return detail::predictor(plan, g, s, layers).predict();
}
constexpr step_prediction predict_step(const auto& plan, const gpu_speed& g) {
  const program::layer_setting s = program::setting_of(plan, plan.recipe.precision, program::target::cuda);
  return predict_step(plan, g, s, program::lower_layers(plan, s));
}

}  // namespace rankc::cost_model
