// SPDX-License-Identifier: Apache-2.0
#include "plan_search.hpp"

#include <rankc/cost_model/transformer_perf/candidates.hpp>
#include <rankc/peak_bytes.hpp>

#include <algorithm>

namespace rankc::tool {

namespace {

/// A schedule of the portfolio, as plans take one.
struct listed_schedule {
  const known_schedule* of;
  int stages_per_rank, microbatches;
  std::string_view name = of->name;
  constexpr int rank_of_stage(int, int) const { return 0; }  // the table says it
  void actions(int, int, auto) const {}
  action_table table(int pp) const {
    report said;
    return make(said, pp);
  }
  void check(report& out, int pp) const { make(out, pp); }

 private:
  action_table make(report& out, int pp) const {
    return of->make(out, {.pp = pp, .stages_per_rank = stages_per_rank, .microbatches = microbatches});
  }
};

using cost_model::transformer_perf::divisors;

constexpr std::string_view searched_schedules[]{"one_f_one_b", "interleaved_one_f_one_b", "zero_bubble_1p", "zero_bubble_v", "dual_pipe_v"};
constexpr int sharing_from = 16384;  // tokens of a sequence that ranks may share out

const known_schedule* find_schedule(std::string_view name) {
  for (const known_schedule& s : portfolio())
    if (s.name == name) return &s;
  return nullptr;
}

/// The schedules of so many pipeline ranks. One rank alone does a microbatch's backward before the next one's forward.
std::vector<const known_schedule*> schedules_of(int pp) {
  if (pp == 1) return {find_schedule("one_f_one_b")};
  std::vector<const known_schedule*> all;
  for (std::string_view name : searched_schedules) all.push_back(find_schedule(name));
  return all;
}

int experts_of(const any_model& m) {
  return std::visit([](const auto& model) { return model.sizes().experts; }, m);
}

/// The dims of so many GPUs.
std::vector<parallel_dims> dims_of(const plan_question& q) {
  std::vector<parallel_dims> all;
  const int experts = experts_of(q.model);
  for (const int pp : divisors(q.gpus))
    for (const int tp : divisors(q.gpus / pp)) {
      if (tp > q.machines.ranks_per_node) break;
      for (const int cp : divisors(q.gpus / pp / tp)) {
        if (cp > 1 && q.recipe.seq < sharing_from) break;
        const int data = q.gpus / pp / tp / cp;
        for (const int shards : divisors(data))
          for (const int ep : divisors(experts > 1 ? shards * cp * tp : 1)) {
            if (ep > 1 && experts % ep != 0) continue;
            parallel_dims d{.world = q.gpus, .dp_replicate = data / shards, .dp_shard = shards, .cp = cp, .tp = tp, .pp = pp};
            d.ep = ep, d.ulysses = cp, d.sequence_parallel = tp > 1;
            all.push_back(d);
            if (shards * cp > 1 && pp == 1) d.reshard = reshard::after_step, all.push_back(d);
          }
      }
    }
  return all;
}

}  // namespace

std::optional<judged_plan> judge(const plan_question& q, const plan_choice& c, report& out) {
  training recipe = q.recipe;
  recipe.recompute = c.recompute;
  const listed_schedule schedule{c.schedule, c.stages_per_rank, c.microbatches};
  const auto counted = std::visit([&](const auto& model) { return rankc::detail::count_plan(out, model, c.dims, schedule, recipe, q.machines, {}); }, q.model);
  if (!accepts(out)) return {};
  const program::layer_setting s = rankc::detail::setting_for(counted, target::cuda);
  const std::vector<program::layer_program> layers = program::lower_layers(counted, s);
  judged_plan j{.choice = c, .time = cost_model::predict_step(counted, *q.gpu, s, layers)};
  j.bytes = rankc::detail::find_worst(counted, layers, s, false).bytes;
  j.fits = q.machines.memory == 0 || j.bytes <= static_cast<std::size_t>(q.machines.memory);
  return j;
}

std::vector<plan_choice> choices_of(const plan_question& q) {
  std::vector<plan_choice> all;
  for (const parallel_dims& d : dims_of(q)) {
    const int ranks = d.dp_replicate * d.dp_shard;
    if (q.recipe.global_batch % ranks != 0) continue;
    for (const int microbatches : divisors(q.recipe.global_batch / ranks))
      for (const known_schedule* s : schedules_of(d.pp))
        for (const recomputation& r : recomputations)
          if (microbatches >= d.pp) all.push_back({d, s, s->has_free_stages_per_rank ? 2 : s->stages_per_rank, microbatches, r});
  }
  return all;
}

plan_ranking rank_plans(const plan_question& q, const std::function<void(std::size_t, std::size_t)>& progress) {
  const std::vector<plan_choice> choices = choices_of(q);
  plan_ranking found{.choices = choices.size(), .legal = 0, .fitting = {}};
  for (std::size_t i = 0; i < choices.size(); ++i) {
    report said;
    if (const auto j = judge(q, choices[i], said)) {
      ++found.legal;
      if (j->fits) found.fitting.push_back(*j);
    }
    if (progress) progress(i + 1, choices.size());
  }
  std::stable_sort(found.fitting.begin(), found.fitting.end(), [](const judged_plan& a, const judged_plan& b) {
    return a.time.step != b.time.step ? a.time.step < b.time.step : a.bytes < b.bytes;
  });
  return found;
}

std::vector<judged_plan> pareto_front(const std::vector<judged_plan>& by_time) {
  std::vector<judged_plan> front;
  for (const judged_plan& j : by_time)
    if (front.empty() || j.bytes < front.back().bytes) front.push_back(j);
  return front;
}

}  // namespace rankc::tool
