// SPDX-License-Identifier: Apache-2.0
// What of a plan a search is free in: degrees, sequences of a microbatch, the schedule, and what backward
// repeats.
#pragma once
#include <rankc/recipe/cluster.hpp>
#include <rankc/base/divisors.hpp>
#include <rankc/recipe/training.hpp>
#include <rankc/cost_model/gpu_speed.hpp>
#include <rankc/mesh/dims.hpp>
#include <rankc/schedules/portfolio.hpp>

#include <vector>

namespace rankc::plan_search {

/// What plans are for, beside the model.
struct question {
  cluster machines{};
  const cost_model::gpu_speed* gpu = nullptr;
  training recipe{};
  int gpus = 1;
};

/// At most 1 where the model has none.
constexpr int experts_of(const auto& model) {
  if constexpr (requires { model.sizes(); }) return model.sizes().experts;
  else return 1;
}

/// All but the schedule.
struct unscheduled {
  parallel_dims dims{};
  int microbatches = 1;
  recomputation recompute{};
};

struct choice : unscheduled {
  schedules::listed schedule{};
};

/// What backward may repeat.
inline constexpr recomputation recomputations[]{{}, {.activations = true, .norms = true}, {.full = true}};

namespace detail {

constexpr int sharing_from = 16384;  // tokens of a sequence that ranks may share out

constexpr std::vector<parallel_dims> dims_of(const question& q, int experts) {
  std::vector<parallel_dims> all;
  for (const int pp : divisors(q.gpus))
    for (const int tp : divisors(q.gpus / pp)) {
      if (tp > q.machines.ranks_per_node) break;
      for (const int cp : divisors(q.gpus / pp / tp)) {
        if (cp > 1 && q.recipe.seq < sharing_from) break;
        const int data = q.gpus / pp / tp / cp;
        for (const int shards : divisors(data))
          for (const int ep : divisors(experts > 1 ? shards * cp * tp : 1)) {
            if (ep > 1 && experts % ep != 0) continue;
            parallel_dims d{.world = q.gpus,
                            .dp_replicate = data / shards,
                            .dp_shard = shards,
                            .cp = cp,
                            .tp = tp,
                            .pp = pp};
            d.ep = ep;
            d.ulysses = cp;
            d.sequence_parallel = tp > 1;
            all.push_back(d);
            if (shards * cp > 1 && pp == 1) {
              d.reshard = reshard::after_step;
              all.push_back(d);
            }
          }
      }
    }
  return all;
}

template <class... Schedule>
constexpr void add_all(std::vector<schedules::listed>& all, int microbatches,
                       schedules::type_list<Schedule...>) {
  const auto add = [&]<class S>(S s) {
    if constexpr (schedules::has_free_stages<S>)
      for (const int stages_per_rank : {2, 4}) all.push_back({S::name, microbatches, stages_per_rank});
    else all.push_back({S::name, microbatches, s.stages_per_rank});
  };
  (add(Schedule{}), ...);
}

}  // namespace detail

/// All degrees of pp, tp, cp, ep and of replicas and shards, sequences of a microbatch, and what backward
/// repeats: what the recipe says, where it says something.
constexpr std::vector<unscheduled> unscheduled_choices(const question& q, int experts) {
  std::vector<unscheduled> all;
  for (const parallel_dims& d : detail::dims_of(q, experts)) {
    const int ranks = d.dp_replicate * d.dp_shard;
    if (q.recipe.global_batch % ranks != 0) continue;
    for (const int microbatches : divisors(q.recipe.global_batch / ranks)) {
      if (microbatches < d.pp) continue;
      if (q.recipe.recompute.any()) all.push_back({d, microbatches, q.recipe.recompute});
      else
        for (const recomputation& r : recomputations) all.push_back({d, microbatches, r});
    }
  }
  return all;
}

/// The published schedules; one rank alone does a microbatch's backward before the next one's forward. Those
/// that keep all microbatches, and are no faster, are left out.
constexpr std::vector<schedules::listed> schedules_of(int pp, int microbatches) {
  if (pp == 1) return {{schedules::one_f_one_b::name, microbatches, 1}};
  std::vector<schedules::listed> all;
  detail::add_all(all, microbatches, schedules::published{});
  std::erase_if(all, [](const schedules::listed& s) {
    return s.name == schedules::gpipe::name || s.name == schedules::looped_bfs::name;
  });
  return all;
}

}  // namespace rankc::plan_search
