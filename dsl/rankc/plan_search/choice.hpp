// SPDX-License-Identifier: Apache-2.0
// The part of a plan that a search chooses: degrees, sequences of a microbatch, the schedule, and
// recomputation.
#pragma once
#include <rankc/recipe/cluster.hpp>
#include <rankc/base/divisors.hpp>
#include <rankc/recipe/training.hpp>
#include <rankc/cost_model/gpu_speed.hpp>
#include <rankc/mesh/regions.hpp>
#include <rankc/schedules/portfolio.hpp>

#include <vector>

namespace rankc::plan_search {

/// The fixed part of the plans, without the model.
struct question {
  cluster machines{};
  const cost_model::gpu_speed* gpu = nullptr;
  training recipe{};
  int gpus = 1;
};

/// The number of experts; at most 1 for a model without experts.
constexpr int experts_of(const auto& model) {
  if constexpr (requires { model.sizes(); }) return model.sizes().experts;
  else return 1;
}

/// A choice without the schedule.
struct unscheduled {
  parallel_dims dims{};
  int microbatches = 1;
  recomputation recompute{};
};

struct choice : unscheduled {
  schedules::listed schedule{};
};

/// The forms of recomputation that a search tries.
inline constexpr recomputation recomputations[]{{}, {.activations = true, .norms = true}, {.full = true}};

namespace detail {

constexpr int sharing_from = 16384;  // the fewest tokens of a sequence that ranks may shard

/// The axes that divide the ranks before data parallelism takes the rest: layers, then the axes that
/// communicate within a node, then the others.
consteval rankc::detail::list_of<axis> list_searched_axes() {
  rankc::detail::list_of<axis> out;
  const auto add = [&](auto is_next) {
    for (const named_degree& a : all_degrees) {
      const axis_row& r = row(a.along);
      const bool divides_ranks = r.fills == fills::world && r.shares != part::sequences;
      if (divides_ranks && r.lowered == lowered_values::all && is_next(r)) out.add(r.id);
    }
  };
  add([](const axis_row& r) { return r.shares == part::layers; });
  add([](const axis_row& r) { return r.stays_in_node; });
  add([](const axis_row& r) { return r.shares != part::layers && !r.stays_in_node; });
  return out;
}
inline constexpr rankc::detail::list_of<axis> searched_axes = list_searched_axes();

/// True if a search tries a degree above 1.
constexpr bool tries(const question& q, const axis_row& r, int degree) {
  if (r.stays_in_node && degree > q.machines.ranks_per_node) return false;
  return r.shares != part::positions || q.recipe.seq >= sharing_from;
}

/// Adds the ways to shard weights and experts among `data` ranks. The other degrees are already chosen.
constexpr void add_data_ranks(std::vector<parallel_dims>& all, int experts, int data, parallel_dims d) {
  const int of_sequence = static_cast<int>(ranks_along_each(d, cuts_sequences));
  d.ulysses = d.cp;
  d.sequence_parallel = region_ranks(d) > 1;
  for (const int shards : divisors(data))
    for (const int ep : divisors(experts > 1 ? shards * of_sequence : 1)) {
      if (ep > 1 && experts % ep != 0) continue;
      d.dp_replicate = data / shards;
      d.dp_shard = shards;
      d.ep = ep;
      d.reshard = reshard::standard;
      all.push_back(d);
      if (weight_shards(d) == 1 || d.pp > 1) continue;
      d.reshard = reshard::after_step;
      all.push_back(d);
    }
}

/// Adds the dims with each degree of the searched axes, from axis number `next` on. `ranks` are left to
/// divide.
constexpr void add_dims(std::vector<parallel_dims>& all, const question& q, int experts, int ranks,
                        const parallel_dims& chosen, std::size_t next = 0) {
  if (next == searched_axes.size()) return add_data_ranks(all, experts, ranks, chosen);
  const axis_row& r = row(searched_axes[next]);
  for (const int degree : divisors(ranks)) {
    if (degree > 1 && !tries(q, r, degree)) break;
    parallel_dims d = chosen;
    d.*r.degree = degree;
    add_dims(all, q, experts, ranks / degree, d, next + 1);
  }
}

constexpr std::vector<parallel_dims> dims_of(const question& q, int experts) {
  std::vector<parallel_dims> all;
  add_dims(all, q, experts, q.gpus, {.world = q.gpus});
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

/// All degrees of pp, tp, cp, ep, replicas and shards, all numbers of sequences in a microbatch, and all
/// forms of recomputation. If the recipe specifies a recomputation, only that one.
constexpr std::vector<unscheduled> unscheduled_choices(const question& q, int experts) {
  std::vector<unscheduled> all;
  for (const parallel_dims& d : detail::dims_of(q, experts)) {
    const int ranks = static_cast<int>(batch_ranks(d));
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

/// The published schedules. A single rank runs each microbatch's backward before the next forward. Schedules
/// that keep all microbatches and are no faster are left out.
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
