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
  constexpr held& operator+=(const program::layer_parameter& w) {
    if (w.trainable) trained += static_cast<double>(w.shard());
    if (w.shards > 1) gathered += static_cast<double>(w.stored());
    if (w.trainable && w.sum_over_dp) summed += static_cast<double>(w.shard());
    return *this;
  }
  constexpr held& operator+=(const held& more) {
    trained += more.trained, gathered += more.gathered, summed += more.summed;
    return *this;
  }
};

/// What the phases of a layer take.
constexpr stage_spent phases_of(const gpu_speed& g, const program::layer_program& l, const program::layer_setting& s, int ranks_per_node) {
  using program::phase;
  const auto takes = [&](phase does) { return time_of(g, l, s, does, ranks_per_node); };
  stage_spent one{.forward = takes(phase::forward), .input = {}, .weight = {}, .again = takes(phase::recompute)};
  one.input = takes(l.in_halves ? phase::backward_input : phase::backward);
  if (l.in_halves) one.weight = takes(phase::backward_weight);
  return one;
}

/// A form of a plan's layers, as a rank has it.
/// Units: bytes of what goes between stages.
struct timed_form {
  stage_spent takes;
  std::vector<program::layer_parameter> parameters;
  std::size_t boundary = 0;
};

/// The optimizer and the norm, which pass over all that is trained.
constexpr effort sweep(const gpu_speed& g, const training& recipe, const program::layer_setting& s, double trained) {
  if (!s.trains) return {};
  const auto real = static_cast<double>(s.bytes(program::element_kind::real)), wide = static_cast<double>(s.bytes(program::element_kind::wide));
  const program::optimizer_state kept = program::state_of(recipe, s.bytes(program::element_kind::real), s.bytes(program::element_kind::wide), s.trains);
  const double each = 2.0 * static_cast<double>(kept.weight) + 2.0 * kept.moments * static_cast<double>(kept.moment) + wide + (kept.working_copy ? real : 0);
  const double bytes = trained * (each + wide);
  return {g.sweeps.time(bytes), bytes * g.joules_of_byte};
}

/// What goes over links beside computation: weights that are gathered, gradients that are summed.
constexpr double beside(const gpu_speed& g, const parallel_dims& d, int ranks_per_node, const training& recipe, const program::layer_setting& s,
                        int microbatches, const held& h) {
  const auto real = static_cast<double>(s.bytes(program::element_kind::real)), wide = static_cast<double>(s.bytes(program::element_kind::wide));
  const double sum = recipe.reductions == bf16 ? real : wide;
  const span shards = span_of(weight_shards(d), stride_of_data(d), ranks_per_node),
             replicas = span_of(weight_replicas(d), stride_of_data(d) * weight_shards(d), ranks_per_node);
  const bool again = reshards_after_layer(d);
  const double times = again ? microbatches : 1;
  return gathering_time(g, shards, h.gathered * real) * times * (again ? 2 : 1) + gathering_time(g, shards, h.gathered * sum) * times +
         reducing_time(g, replicas, h.summed * sum);
}

/// What a rank takes without waiting for other ranks.
constexpr step_prediction alone(const gpu_speed& g, const spent& work, const effort& swept, double over_links) {
  // What computation is too short to hide is waited for.
  const double waits = over_links * g.beside + std::max(0.0, over_links - work.seconds());
  step_prediction out{.products = work.products.seconds, .attention = work.attention.seconds, .passes = work.passes.seconds,
                      .optimizer = swept.seconds, .links = work.links + waits};
  out.step = work.seconds() + swept.seconds + waits + g.step_start;
  const double joules = work.computing().joules + swept.joules + (work.links + over_links) * g.link_power;
  out.limited = std::max(0.0, joules / (g.power - g.rest) - out.step);
  out.step += out.limited;
  return out;
}

/// Predicts a step of a plan on GPUs of one kind.
/// Shapes: `forms` as forms_of says.
template <class Plan, class Form>
class predictor {
 public:
  constexpr predictor(const Plan& p, const gpu_speed& g, const program::layer_setting& s, const std::vector<Form>& layers)
      : p_(p), g_(g), s_(s), layers_(layers), forms_(forms_of_stages(p)) {
    for (const std::vector<int>& forms : forms_) {
      stages_.emplace_back();
      for (int f : forms) {
        const stage_spent& one = layers_[static_cast<std::size_t>(f)].takes;
        stages_.back().forward += one.forward, stages_.back().input += one.input;
        stages_.back().weight += one.weight, stages_.back().again += one.again;
      }
    }
    add_ranks();
  }

  /// The schedule by what its actions take.
  constexpr totals scheduled() const { return total(p_.actions, action_costs()); }
  /// Units: seconds, of all actions.
  constexpr step_prediction predict(double makespan) const {
    step_prediction out;
    double slowed = 1, busy = 0;  // by power, of the rank that it limits most; of the one that has most to do
    for (const pipeline_rank& r : ranks_) {
      slowed = std::max(slowed, 1 + r.alone.limited / (r.alone.step - r.alone.limited));
      if (r.alone.step > out.step) out = r.alone, busy = r.busy;
    }
    out.bubble = std::max(0.0, slowed * (makespan - busy));
    out.step += out.bubble;
    return out;
  }

  /// What no order of the actions is faster than: a rank begins when a microbatch can have reached it; where backward is
  /// whole, its last gradient has to reach the first stage.
  constexpr double least_makespan(bool in_halves) const {
    const double send = message_time(g_, across_stages(), bytes_between_stages());
    double longest = 0;
    for (int rank = 0; rank < p_.dims.pp; ++rank) {
      double before = 0;
      for (int stage = 0; !p_.actions.has_stage(rank, stage); ++stage) {
        const stage_spent& takes = stages_[static_cast<std::size_t>(stage)];
        const bool hops = p_.actions.rank_of_stage[static_cast<std::size_t>(stage)] != p_.actions.rank_of_stage[static_cast<std::size_t>(stage) + 1];
        before += takes.forward.seconds() + (in_halves ? 0 : takes.input.seconds() + takes.weight.seconds() + takes.again.seconds());
        if (hops) before += in_halves ? send : 2 * send;
      }
      longest = std::max(longest, before + ranks_[static_cast<std::size_t>(rank)].busy);
    }
    return longest;
  }

 private:
  struct pipeline_rank {
    double busy = 0;  // of the schedule
    step_prediction alone;
  };
  constexpr void add_ranks() {
    std::vector<held> own;  // of each form's parameters, but for those that layers share
    for (const timed_form& l : layers_) {
      held& h = own.emplace_back();
      for (const program::layer_parameter& w : l.parameters)
        if (!w.shared) h += w;
    }
    for (int rank = 0; rank < p_.dims.pp; ++rank) {
      const held keeps = held_on(rank, own);
      const spent work = work_of(rank);
      ranks_.push_back({work.seconds(),
                        alone(g_, work, sweep(g_, p_.recipe, s_, keeps.trained),
                              beside(g_, p_.dims, p_.machines.ranks_per_node, p_.recipe, s_, p_.actions.microbatches, keeps))});
    }
  }
  constexpr held held_on(int rank, const std::vector<held>& own) const {
    held h;
    std::vector<parameter_name> seen;
    for (int stage = 0; stage < p_.actions.stages(); ++stage) {
      if (!p_.actions.has_stage(rank, stage)) continue;
      for (int f : forms_[static_cast<std::size_t>(stage)]) {
        h += own[static_cast<std::size_t>(f)];
        for (const program::layer_parameter& w : layers_[static_cast<std::size_t>(f)].parameters)
          if (w.shared && std::find(seen.begin(), seen.end(), w.name) == seen.end()) seen.push_back(w.name), h += w;
      }
    }
    return h;
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
    return static_cast<double>(layers_[static_cast<std::size_t>(forms_.back().back())].boundary);
  }

  /// What a rank does of its stages, of both directions where there are two.
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

  const Plan& p_;
  const gpu_speed& g_;
  const program::layer_setting& s_;
  const std::vector<Form>& layers_;
  std::vector<std::vector<int>> forms_;
  std::vector<stage_spent> stages_;
  std::vector<pipeline_rank> ranks_;
};

}  // namespace detail

/// What a step takes on GPUs of a kind. The plan breaks no rule; `layers` are its forms, lowered for CUDA.
constexpr step_prediction predict_step(const auto& plan, const gpu_speed& g, const program::layer_setting& s,
                                       const std::vector<program::layer_program>& layers) {
  std::vector<detail::timed_form> forms;
  for (const program::layer_program& l : layers) forms.push_back({detail::phases_of(g, l, s, plan.machines.ranks_per_node), l.parameters, l.x_bytes});
  const detail::predictor steps(plan, g, s, forms);
  return steps.predict(steps.scheduled().makespan);
}
constexpr step_prediction predict_step(const auto& plan, const gpu_speed& g) {
  const program::layer_setting s = program::setting_of(plan, plan.recipe.precision, program::target::cuda);
  return predict_step(plan, g, s, program::lower_layers(plan, s));
}

}  // namespace rankc::cost_model
